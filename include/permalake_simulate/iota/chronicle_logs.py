"""Lines of synthetic Chronicle archive files, in their JSON dialect for Chrysalis messages and milestones.

Ids and addresses are hex, other bytes lists of numbers, legacy hashes lists of trits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from permalake.iota.codec.byte_reader import ByteReader
from permalake.iota.codec.milestones import Milestone
from permalake.iota.codec.receipts import Receipt

_STATES = ("conflicting", "included", "noTransaction")
_TRANSACTION = 0
_OUTPUTS = ("SignatureLockedSingle", "SignatureLockedDustAllowance")
_TRITS, _TRITS_PER_BYTE = 243, 5


def entry(
    index: int, block_id: bytes, raw: bytes, state: int, milestone: dict[str, Any] | None = None
) -> str:
    """Return a message and its metadata as an entry of ``messages``; ``milestone`` is what it carries."""
    message = _message(raw, milestone)
    metadata = {
        "messageId": block_id.hex(),
        "parentMessageIds": message["parents"],
        "isSolid": True,
        "referencedByMilestoneIndex": index,
        "ledgerInclusionState": _STATES[state],
        "shouldPromote": None,
        "shouldReattach": None,
    }
    return f'"{block_id.hex()}":{_packed([message, metadata])}'


def line(milestone: Milestone, entries: Iterable[str]) -> str:
    """Return the line of a milestone with its messages."""
    told = _packed(milestone_body(milestone))
    messages = ",".join(entries)
    return (
        f'{{"milestone_index":{milestone.index},"milestone":{told},"messages":{{{messages}}},'
        '"pending":{},"created_by":"Incoming"}\n'
    )


def milestone_body(milestone: Milestone) -> dict[str, Any]:
    """Return a milestone payload."""
    receipt = milestone.receipt
    essence = {
        "index": milestone.index,
        "timestamp": milestone.timestamp,
        "parents": [parent.hex() for parent in milestone.parents],
        "merkle_proof": list(milestone.applied_root),
        "next_pow_score": 0,
        "next_pow_score_milestone_index": 0,
        "public_keys": [list(key) for key, _ in milestone.signatures],
        "receipt": {"type": "Receipt", "data": _receipt(receipt)} if receipt else None,
    }
    return {"essence": essence, "signatures": [list(signature) for _, signature in milestone.signatures]}


def _receipt(receipt: Receipt) -> dict[str, Any]:
    treasury = {
        "input": {"type": "Treasury", "data": receipt.treasury_input.hex()},
        "output": {"type": "Treasury", "data": {"amount": receipt.treasury_output}},
    }
    return {
        "migrated_at": receipt.migrated_at,
        "last": receipt.final,
        "funds": [
            {
                "tail_transaction_hash": _trits(fund.tail_transaction_hash),
                "output": {"address": _address(fund.address), "amount": fund.deposit},
            }
            for fund in receipt.funds
        ],
        "transaction": {"type": "TreasuryTransaction", "data": treasury},
    }


def _trits(packed: bytes) -> list[int]:
    """Return balanced trits, five to a byte, the least first."""
    trits = []
    for byte in packed:
        value = (byte ^ 0x80) - 0x80
        for _ in range(_TRITS_PER_BYTE):
            trit = (value + 1) % 3 - 1
            trits.append(trit)
            value = (value - trit) // 3
    return trits[:_TRITS]


def _message(raw: bytes, milestone: dict[str, Any] | None) -> dict[str, Any]:
    reader = ByteReader(raw)
    network_id = reader.uint(8)
    parents = [parent.hex() for parent in reader.pieces(reader.uint(1), 32)]
    payload = reader.take(reader.uint(4))
    body = {"type": "Milestone", "data": milestone} if milestone else _payload(payload)
    return {"network_id": network_id, "parents": parents, "payload": body, "nonce": reader.uint(8)}


def _payload(raw: bytes) -> dict[str, Any] | None:
    if not raw:
        return None
    reader = ByteReader(raw)
    if reader.uint(4) == _TRANSACTION:
        return {"type": "Transaction", "data": _transaction(reader)}
    index = reader.take(reader.uint(2))
    data = reader.take(reader.uint(4))
    return {"type": "Indexation", "data": {"index": list(index), "data": list(data)}}


def _transaction(reader: ByteReader) -> dict[str, Any]:
    reader.take(1)
    inputs = [{"type": "Utxo", "data": one[1:].hex()} for one in reader.pieces(reader.uint(2), 35)]
    outputs = [_output(one) for one in reader.pieces(reader.uint(2), 42)]
    payload = _payload(reader.take(reader.uint(4)))
    unlocks = [_unlock(reader) for _ in range(reader.uint(2))]
    essence = {"inputs": inputs, "outputs": outputs, "payload": payload}
    return {"essence": {"type": "Regular", "data": essence}, "unlock_blocks": unlocks}


def _output(raw: bytes) -> dict[str, Any]:
    amount = int.from_bytes(raw[34:], "little")
    return {"type": _OUTPUTS[raw[0]], "data": {"address": _address(raw[2:34]), "amount": amount}}


def _unlock(reader: ByteReader) -> dict[str, Any]:
    if reader.uint(1):
        return {"type": "Reference", "data": reader.uint(2)}
    reader.take(1)
    signed = {"public_key": list(reader.take(32)), "signature": list(reader.take(64))}
    return {"type": "Signature", "data": {"type": "Ed25519", "data": signed}}


def _address(address: bytes) -> dict[str, Any]:
    return {"type": "Ed25519", "data": address.hex()}


def _packed(body: object) -> str:
    return json.dumps(body, separators=(",", ":"))
