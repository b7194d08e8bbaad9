"""Milestones of two synthetic tangles (see tests/data/iota/README.md): receipts, foundries, conflicts."""

from __future__ import annotations

import json

import pytest

from permalake.arrays.hexa import from_hex, hex_slices, to_hex
from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.merkle import merkle_root
from permalake.iota.codec.milestones import decode_milestone, verify_signatures
from permalake.iota.codec.to_json import milestone_payload_json, output_json
from support import places
from support.iota_json import as_nodes_write
from support.iota_objects import repack

DATA = places.DATA / "iota" / "synthetic"
HRP = {"chrysalis": "iota", "stardust": "smr"}
ADDRESS_COLUMNS = {
    "address": "address",
    "sender": "sender",
    "issuer": "issuer",
    "state_controller": "state_controller",
    "governor": "governor",
    "dust_return_address": "storage_return",
}


class Tangle:
    def __init__(self, protocol):
        self.protocol = protocol
        self.rows = self.read("messages" if protocol == "chrysalis" else "blocks")
        self.blocks = decode_blocks(from_hex([row["raw"] for row in self.rows]), protocol)
        transactions = self.blocks.transactions
        self.transaction_id = to_hex(transactions.transaction_id).to_pylist()
        self.block_id = to_hex(self.blocks.block_id).to_pylist()
        parts = transactions.outputs
        self.output = {
            self.transaction_id[transaction] + index.to_bytes(2, "little").hex(): at
            for at, (transaction, index) in enumerate(
                zip(parts.transaction.tolist(), parts.idx.tolist(), strict=True)
            )
        }

    def read(self, name):
        with (DATA / self.protocol / f"{name}.jsonl").open() as lines:
            return [json.loads(line) for line in lines]


@pytest.fixture(scope="module", params=["chrysalis", "stardust"])
def tangle(request):
    return Tangle(request.param)


def test_ids_hold_and_bytes_come_back(tangle) -> None:
    assert not tangle.blocks.error.any()
    assert tangle.block_id == [row["id"] for row in tangle.rows]
    for at, row in enumerate(tangle.rows):
        assert repack(tangle.blocks, at, tangle.protocol).hex() == row["raw"]


def test_inputs_outputs_and_unlocks_are_the_expected_rows(tangle) -> None:
    transactions, found = tangle.blocks.transactions, set()
    for variant in ("input", "output", "unlock"):
        parts = getattr(transactions, f"{variant}s")
        raw = hex_slices(tangle.blocks.data, parts.start, parts.length).to_pylist()
        for at, own in enumerate(parts.transaction.tolist()):
            message = tangle.block_id[transactions.block[own]]
            found.add((tangle.transaction_id[own], int(parts.idx[at]), variant, message, raw[at]))
    columns = ("transaction_id", "idx", "variant", "message_id", "data")
    assert found == {tuple(row[column] for column in columns) for row in tangle.read("transactions")}


def test_tags_are_the_expected_rows(tangle) -> None:
    blocks = tangle.blocks
    tags = hex_slices(blocks.data, blocks.tag_start, blocks.tag_length).to_pylist()
    found = {(tag, block) for tag, block in zip(tags, tangle.block_id, strict=True) if tag}
    assert found == {(row["tag"], row["message_id"]) for row in tangle.read("tags")}


def test_created_and_consumed_outputs_are_the_ledgers(tangle) -> None:
    for name in ("created_outputs", "consumed_outputs"):
        rows = tangle.read(name)
        outputs = decode_outputs(from_hex([row["rawOutput"] for row in rows]), tangle.protocol)
        assert not outputs.error.any()
        for row in rows:
            as_json = output_json(bytes.fromhex(row["rawOutput"]), tangle.protocol)
            assert as_json == as_nodes_write(row["output"])


def test_addresses_amounts_and_foundry_ids_are_the_expected_columns(tangle) -> None:
    output = tangle.blocks.transactions.output
    texts = {
        name: encode_addresses(
            HRP[tangle.protocol], getattr(output, column).kind, getattr(output, column).value
        ).to_pylist()
        for name, column in ADDRESS_COLUMNS.items()
    }
    minted = []
    for row in tangle.read("outputs"):
        if row["output_id"] not in tangle.output:
            minted.append(row)
            continue
        at = tangle.output[row["output_id"]]
        assert output.amount[at] == row["amount"]
        assert {name: texts[name][at] for name in texts if name in row} == {
            name: row[name] for name in texts if name in row
        }
        if row["table"] == "foundry":
            assert bytes(output.chain_id[at]).hex() == row["foundry_id"]
    assert len(minted) == sum(
        len(milestone.receipt.funds) for milestone in tangle.blocks.milestones.values() if milestone.receipt
    )


def test_milestones_hold_with_roots_signatures_receipts_and_parameters(tangle) -> None:
    state = {row["message_id"]: row for row in tangle.read("expected_messages")}
    seen = set()
    for expected in tangle.read("milestones"):
        milestone = decode_milestone(bytes.fromhex(expected["rawPayload"]), tangle.protocol)
        as_json = milestone_payload_json(bytes.fromhex(expected["rawPayload"]), tangle.protocol)
        assert as_json == as_nodes_write(expected["payload"])
        assert milestone.milestone_id.hex() == expected["milestoneId"].removeprefix("0x")
        assert verify_signatures(milestone) == []
        cone = sorted(
            (row["white_flag_index"], message, row["inclusion_state"])
            for message, row in state.items()
            if row["milestone_index"] == milestone.index
        )
        included = [bytes.fromhex(message) for _, message, inclusion in cone if inclusion == 1]
        assert merkle_root(included) == milestone.applied_root
        if tangle.protocol == "stardust":
            assert merkle_root([bytes.fromhex(message) for _, message, _ in cone]) == milestone.inclusion_root
        seen |= {"receipt"} if milestone.receipt else set()
        seen |= {"parameters"} if milestone.protocol_parameters else set()
    assert seen == ({"receipt"} if tangle.protocol == "chrysalis" else {"parameters"})
