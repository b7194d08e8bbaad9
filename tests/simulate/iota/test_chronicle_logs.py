"""Synthetic Chronicle logs: the messages are those that the milestones sign, all funds come from receipts."""

import json

import pytest

from permalake.errors import ConfigError
from permalake.iota.codec.encode import (
    MilestoneDraft,
    ReferenceUnlock,
    SignatureUnlock,
    TaggedData,
    Transaction,
    pack_block,
    pack_milestone,
    pack_milestone_essence,
    pack_tagged_data,
    pack_transaction,
)
from permalake.iota.codec.encode_outputs import Address, Output
from permalake.iota.codec.merkle import merkle_root
from permalake.iota.codec.milestones import decode_milestone, verify_signatures
from permalake.iota.codec.receipts import MigratedFunds, Receipt
from permalake_simulate.iota import tangle_generator
from permalake_simulate.iota.spine import hashed
from support.worlds import tangle

KINDS = {"SignatureLockedSingle": 0, "SignatureLockedDustAllowance": 1}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The lines in order of their files, and the totals."""
    folder = tmp_path_factory.mktemp("logs") / "world"
    totals = tangle_generator.simulate(None, tangle("chrysalis", layout="chronicle"), folder)
    files = sorted(folder.rglob("*.log"), key=lambda file: int(file.name.split("to")[0]))
    lines = []
    for file in files:
        found = [json.loads(line) for line in file.read_text().splitlines()]
        first, last = (int(part) for part in file.stem.split("to"))
        assert [line["milestone_index"] for line in found] == list(range(first, last))
        lines += found
    return lines, totals


def packed_trits(trits):
    values = [trits[at : at + 5] for at in range(0, 243, 5)]
    return bytes(sum(trit * 3**place for place, trit in enumerate(five)) % 256 for five in values)


def packed_milestone(body):
    essence = body["essence"]
    told = essence["receipt"]
    keys = tuple(map(bytes, essence["public_keys"]))
    draft = MilestoneDraft(
        index=essence["index"],
        timestamp=essence["timestamp"],
        parents=tuple(map(bytes.fromhex, essence["parents"])),
        applied_root=bytes(essence["merkle_proof"]),
        receipt=packed_receipt(told["data"]) if told else None,
        public_keys=keys,
    )
    signatures = zip(keys, map(bytes, body["signatures"]), strict=True)
    return pack_milestone(pack_milestone_essence(draft, "chrysalis"), list(signatures), "chrysalis")


def packed_receipt(told):
    treasury = told["transaction"]["data"]
    funds = tuple(
        MigratedFunds(
            packed_trits(fund["tail_transaction_hash"]),
            0,
            bytes.fromhex(fund["output"]["address"]["data"]),
            fund["output"]["amount"],
        )
        for fund in told["funds"]
    )
    spent = bytes.fromhex(treasury["input"]["data"])
    return Receipt(told["migrated_at"], told["last"], funds, spent, treasury["output"]["data"]["amount"])


def transaction_of(data):
    essence = data["essence"]["data"]
    inputs = [bytes.fromhex(one["data"]) for one in essence["inputs"]]
    outputs = [
        Output(
            KINDS[one["type"]],
            one["data"]["amount"],
            Address(0, bytes.fromhex(one["data"]["address"]["data"])),
        )
        for one in essence["outputs"]
    ]
    unlocks = [
        ReferenceUnlock(1, one["data"])
        if one["type"] == "Reference"
        else SignatureUnlock(*(bytes(one["data"]["data"][name]) for name in ("public_key", "signature")))
        for one in data["unlock_blocks"]
    ]
    payload = essence["payload"] and tagged(essence["payload"]["data"])
    pairs = tuple((one[:32], int.from_bytes(one[32:], "little")) for one in inputs)
    return Transaction(pairs, tuple(outputs), tuple(unlocks), payload)


def tagged(data):
    return TaggedData(bytes(data["index"]), bytes(data["data"]))


def packed_message(message):
    payload = message["payload"]
    kind, data = (payload["type"], payload["data"]) if payload else (None, None)
    body = b""
    if kind == "Milestone":
        body = packed_milestone(data)
    elif kind == "Indexation":
        body = pack_tagged_data(tagged(data), "chrysalis")
    elif kind == "Transaction":
        body = pack_transaction(transaction_of(data), "chrysalis")
    parents = [bytes.fromhex(parent) for parent in message["parents"]]
    return pack_block(parents, body, "chrysalis", nonce=message["nonce"], network_id=message["network_id"])


def test_messages_have_their_ids(logs) -> None:
    kinds = set()
    for line in logs[0]:
        for message_id, (message, metadata) in line["messages"].items():
            assert hashed(packed_message(message)).hex() == message_id == metadata["messageId"]
            kinds.add(message["payload"] and message["payload"]["type"])
    assert kinds == {"Milestone", "Indexation", "Transaction", None}


def test_milestones_sign_what_is_included(logs) -> None:
    for line in logs[0]:
        milestone = decode_milestone(packed_milestone(line["milestone"]), "chrysalis")
        assert verify_signatures(milestone, (), 2) == []
        included = [
            bytes.fromhex(message_id)
            for message_id, (_, metadata) in line["messages"].items()
            if metadata["ledgerInclusionState"] == "included"
        ]
        assert merkle_root(included) == milestone.applied_root


def test_all_funds_come_from_receipts(logs) -> None:
    unspent, transferred = {}, 0
    for line in logs[0]:
        for message, metadata in line["messages"].values():
            if metadata["ledgerInclusionState"] != "included":
                continue
            transaction = transaction_of(message["payload"]["data"])
            spent = sum(unspent.pop(source) for source in transaction.inputs)
            assert spent == sum(output.amount for output in transaction.outputs)
            transaction_id = hashed(pack_transaction(transaction, "chrysalis"))
            for at, output in enumerate(transaction.outputs):
                unspent[transaction_id, at] = output.amount
            transferred += spent
        milestone = decode_milestone(packed_milestone(line["milestone"]), "chrysalis")
        for at, fund in enumerate(milestone.receipt.funds if milestone.receipt else ()):
            unspent[milestone.milestone_id, at] = fund.deposit
    *_, last = logs[1].values()
    assert sum(unspent.values()) == last.unspent
    assert transferred == sum(total.transferred_tokens for total in logs[1].values())
    assert sum(len(line["messages"]) for line in logs[0]) == sum(total.messages for total in logs[1].values())


def test_only_chrysalis_has_such_logs() -> None:
    with pytest.raises(ConfigError, match="chronicle is for chrysalis"):
        tangle("stardust", layout="chronicle")
