"""Real messages, blocks and cones decode to exactly what nodes said of them."""

from __future__ import annotations

import json

import pytest

from permalake.arrays.hexa import from_hex, to_hex
from permalake.arrays.slices import slices
from permalake.config.networks import CoordinatorKey
from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.merkle import audit_path, merkle_root, root_from_path
from permalake.iota.codec.milestones import decode_milestone, verify_signatures
from permalake.iota.codec.to_json import block_json, milestone_payload_json, output_json
from support import places
from support.iota_json import as_nodes_write
from support.iota_objects import invalidly_signed, repack

DATA = places.DATA / "iota"
SINGLE = [("chrysalis_messages", "chrysalis"), ("stardust_blocks", "stardust")]


def read(name):
    with (DATA / f"{name}.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def decoded(rows, protocol):
    return decode_blocks(from_hex([row["raw"] for row in rows]), protocol)


@pytest.fixture(scope="module")
def shimmer():
    rows = read("shimmer/blocks")
    return rows, decoded(rows, "stardust")


@pytest.mark.parametrize(("name", "protocol"), SINGLE)
def test_real_blocks_have_their_ids_fields_signatures_and_bytes(name, protocol) -> None:
    rows = read(name)
    blocks = decoded(rows, protocol)
    assert not blocks.error.any()
    assert to_hex(blocks.block_id).to_pylist() == [row["id"] for row in rows]
    for row in rows:
        assert block_json(bytes.fromhex(row["raw"]), protocol) == as_nodes_write(row["json"])
    assert not invalidly_signed(blocks).any()
    assert [repack(blocks, at, protocol).hex() for at in range(len(rows))] == [row["raw"] for row in rows]
    for milestone in blocks.milestones.values():
        assert verify_signatures(milestone) == []


@pytest.mark.parametrize(
    ("name", "protocol", "structural", "signatures"),
    [
        (
            "chrysalis_invalid_examples",
            "chrysalis",
            {3: Fault.POW_SCORE, 4: Fault.PARENT_ORDER},
            [1, 2],
        ),
        (
            "stardust_invalid_examples",
            "stardust",
            {0: Fault.VERSION, 1: Fault.VERSION, 4: Fault.VERSION},
            [2, 3],
        ),
    ],
)
def test_invalid_examples_are_refused_for_their_reason(name, protocol, structural, signatures) -> None:
    rows = read(name)
    blocks = decoded(rows, protocol)
    assert {at: blocks.error[at] for at in blocks.error.nonzero()[0].tolist()} == structural
    assert blocks.transactions.block[invalidly_signed(blocks)].tolist() == signatures
    for at in structural:
        assert blocks.reason(at)
        assert "\n" not in blocks.reason(at)
    assert to_hex(blocks.block_id).to_pylist() == [row["id"] for row in rows], "ids are computed even so"
    for at in set(range(len(rows))) - set(structural):
        assert block_json(bytes.fromhex(rows[at]["raw"]), protocol) == as_nodes_write(rows[at]["json"])


def test_complete_cones_have_the_roots_that_their_milestones_signed(shimmer) -> None:
    rows, blocks = shimmer
    ids = [bytes(value) for value in blocks.block_id]
    assert [value.hex() for value in ids] == [row["metadata"]["blockId"][2:] for row in rows]
    assert [repack(blocks, at, "stardust").hex() for at in range(len(rows))] == [row["raw"] for row in rows]
    for expected in read("shimmer/milestones"):
        milestone = decode_milestone(bytes.fromhex(expected["rawPayload"]), "stardust")
        cone = sorted(
            (row["metadata"]["whiteFlagIndex"], at)
            for at, row in enumerate(rows)
            if row["milestone"] == milestone.index
        )
        white_flag = [ids[at] for _, at in cone]
        included = [ids[at] for _, at in cone if rows[at]["metadata"]["ledgerInclusionState"] == "included"]
        assert f"0x{milestone.milestone_id.hex()}" == expected["milestoneId"]
        as_json = milestone_payload_json(bytes.fromhex(expected["rawPayload"]), "stardust")
        assert as_json == as_nodes_write(expected["payload"])
        assert merkle_root(white_flag) == milestone.inclusion_root
        assert merkle_root(included) == milestone.applied_root
        assert verify_signatures(milestone) == []
        for at, leaf in enumerate(white_flag):
            assert root_from_path(leaf, audit_path(white_flag, at)) == milestone.inclusion_root


def test_another_cone_decodes_and_its_ids_hold() -> None:
    rows = read("shimmer_cone_2418187")
    blocks = decoded(rows, "stardust")
    assert not blocks.error.any()
    assert to_hex(blocks.block_id).to_pylist() == [row["metadata"]["blockId"][2:] for row in rows]
    parents = to_hex(blocks.parent).to_pylist()
    for at, row in enumerate(rows):
        own = parents[blocks.parent_offset[at] : blocks.parent_offset[at + 1]]
        assert [f"0x{parent}" for parent in own] == row["metadata"]["parents"]
    assert [repack(blocks, at, "stardust").hex() for at in range(len(rows))] == [row["raw"] for row in rows]


def test_outputs_cut_from_blocks_are_the_ledgers(shimmer) -> None:
    _, blocks = shimmer
    transactions, parts = blocks.transactions, blocks.transactions.outputs
    raw = slices(blocks.data, parts.start, parts.length).to_pylist()
    ids = to_hex(transactions.transaction_id[parts.transaction]).to_pylist()
    index = [f"{at:04x}"[2:] + f"{at:04x}"[:2] for at in parts.idx.tolist()]
    found = {f"0x{a}{b}": at for at, (a, b) in enumerate(zip(ids, index, strict=True))}
    created = read("shimmer/created_outputs")
    for expected in created:
        at = found[expected["outputId"]]
        assert raw[at].hex() == expected["rawOutput"]
    assert {output["output"]["type"] for output in created} == {3, 4, 6}


@pytest.mark.parametrize("name", ["created_outputs", "consumed_outputs"])
def test_outputs_stand_alone(name) -> None:
    rows = read(f"shimmer/{name}")
    outputs = decode_outputs(from_hex([row["rawOutput"] for row in rows]), "stardust")
    assert not outputs.error.any()
    for row in rows:
        assert output_json(bytes.fromhex(row["rawOutput"]), "stardust") == as_nodes_write(row["output"])


def test_milestone_signatures_are_held_against_key_ranges_and_threshold() -> None:
    payload = bytes.fromhex(read("shimmer/milestones")[0]["rawPayload"])
    milestone = decode_milestone(payload, "stardust")
    keys = [CoordinatorKey(key=key.hex()) for key, _ in milestone.signatures]
    assert verify_signatures(milestone, keys, len(keys)) == []
    assert verify_signatures(milestone, keys, len(keys) + 1) == [
        f"{len(keys)} signatures, {len(keys) + 1} are needed"
    ]
    expired = [*keys[1:], keys[0].model_copy(update={"end": milestone.index - 1})]
    assert verify_signatures(milestone, expired, 1) == [
        f"key {keys[0].key} may not sign milestone {milestone.index}"
    ]
    forged = decode_milestone(payload[:-1] + bytes([payload[-1] ^ 1]), "stardust")
    assert verify_signatures(forged) == [f"signature of key {keys[-1].key} is not valid"]
