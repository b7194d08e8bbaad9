"""Chrysalis messages in the JSON dialect of Chronicle archive files to bytes, a whole batch at a time.

In this dialect ids and addresses are hex, other bytes are lists of numbers, hashes of the legacy network are
lists of trits, and variants are ``{"type", "data"}``. The bytes are right if they hash to the message's id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.hexa import from_hex
from permalake.arrays.ragged import bytes_of, combined, concatenated, counts, decimals, joined, sized, uints
from permalake.iota.codec.encode import MilestoneDraft, pack_milestone, pack_milestone_essence
from permalake.iota.codec.faults import json_shape
from permalake.iota.codec.outputs import ED25519
from permalake.iota.codec.receipts import MigratedFunds, Receipt

Json = Mapping[str, Any]
Columns = Mapping[str, pa.Array]

_INDEXATION = b"\x02\0\0\0"
_TRANSACTION = b"\0\0\0\0"
_OUTPUT_KINDS = {"SignatureLockedSingle": b"\0", "SignatureLockedDustAllowance": b"\x01"}
_TRITS, _TRITS_PER_BYTE = 243, 5


def pack_messages(columns: Columns, payload: pa.BinaryArray) -> pa.BinaryArray:
    """Return messages of ``network_id`` and ``nonce`` (decimal), ``parents`` (hex) and packed payloads."""
    parents = columns["parents"]
    return concatenated(
        decimals(columns["network_id"]),
        uints(counts(parents), 1),
        joined(parents, _hexed(parents)),
        sized(payload, 4),
        decimals(columns["nonce"]),
    )


def pack_indexations(index: pa.Array, data: pa.Array) -> pa.BinaryArray:
    """Return indexation payloads of lists of numbers; null where the index is null."""
    return concatenated(_INDEXATION, sized(bytes_of(index), 2), sized(bytes_of(data), 4))


def pack_transactions(columns: Columns) -> pa.BinaryArray:
    """Return transaction payloads.

    Args:
        columns: ``inputs`` list<hex>, ``outputs`` list<struct<kind, address, amount>>, ``index`` and
            ``data`` of the inner indexation (null: none), ``unlocks`` list<struct<reference, public_key,
            signature>>.
    """
    inputs, outputs, unlocks = columns["inputs"], columns["outputs"], columns["unlocks"]
    inner = pc.fill_null(pack_indexations(columns["index"], columns["data"]), b"")
    return concatenated(
        _TRANSACTION,
        b"\0",
        uints(counts(inputs), 2),
        joined(inputs, concatenated(b"\0", _hexed(inputs))),
        uints(counts(outputs), 2),
        joined(outputs, pack_outputs(combined(pc.list_flatten(outputs)))),
        sized(inner, 4),
        uints(counts(unlocks), 2),
        joined(unlocks, _unlocks(combined(pc.list_flatten(unlocks)))),
    )


def _hexed(lists: pa.Array) -> pa.BinaryArray:
    return from_hex(combined(pc.list_flatten(lists)))


def pack_outputs(outputs: pa.StructArray) -> pa.BinaryArray:
    """Return outputs of ``kind``, ``address`` (hex) and ``amount`` (decimal)."""
    kind, address, amount = outputs.flatten()
    kind_names = pa.array(list(_OUTPUT_KINDS), pa.string())
    coded = pa.array(list(_OUTPUT_KINDS.values()), pa.binary()).take(pc.index_in(kind, kind_names))
    return concatenated(coded, b"\0", from_hex(combined(address)), decimals(amount))


def _unlocks(unlocks: pa.StructArray) -> pa.BinaryArray:
    reference, public_key, signature = unlocks.flatten()
    number = pc.fill_null(reference, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    referring = concatenated(b"\x01", uints(number, 2))
    signed = concatenated(b"\0\0", bytes_of(combined(public_key)), bytes_of(combined(signature)))
    return pc.if_else(pc.is_null(reference), signed, referring)


def pack_milestone_text(text: str) -> bytes:
    """Return the bytes of a milestone payload with its type.

    Raises:
        MalformedJsonError: If the text is not JSON, is nested too deeply, or is not a milestone.
    """
    with json_shape("milestone"):
        body = json.loads(text)
        essence = body["essence"]
        keys = tuple(_numbers(key) for key in essence["public_keys"])
        receipt = essence.get("receipt")
        draft = MilestoneDraft(
            index=essence["index"],
            timestamp=essence["timestamp"],
            parents=tuple(bytes.fromhex(parent) for parent in essence["parents"]),
            applied_root=_numbers(essence["merkle_proof"]),
            receipt=_receipt(receipt["data"]) if receipt else None,
            public_keys=keys,
            next_pow_score=essence["next_pow_score"],
            next_pow_score_index=essence["next_pow_score_milestone_index"],
        )
        signed = list(zip(keys, map(_numbers, body["signatures"]), strict=True))
        return pack_milestone(pack_milestone_essence(draft, "chrysalis"), signed, "chrysalis")


def _numbers(values: list[int]) -> bytes:
    # bytes() of a single number would allocate as many bytes.
    if not isinstance(values, list):
        raise TypeError("bytes must be a list of numbers")
    return bytes(values)


def _receipt(body: Json) -> Receipt:
    treasury = body["transaction"]["data"]
    funds = tuple(
        MigratedFunds(
            _packed_trits(fund["tail_transaction_hash"]),
            ED25519,
            bytes.fromhex(fund["output"]["address"]["data"]),
            fund["output"]["amount"],
        )
        for fund in body["funds"]
    )
    return Receipt(
        migrated_at=body["migrated_at"],
        final=body["last"],
        funds=funds,
        treasury_input=bytes.fromhex(treasury["input"]["data"]),
        treasury_output=treasury["output"]["data"]["amount"],
    )


def _packed_trits(trits: Sequence[int]) -> bytes:
    """Return balanced trits as bytes of five trits each, the least significant first (t5b1)."""
    if len(trits) != _TRITS or not set(trits) <= {-1, 0, 1}:
        raise ValueError(f"a tail transaction hash must have {_TRITS} trits")
    fives = (trits[at : at + _TRITS_PER_BYTE] for at in range(0, _TRITS, _TRITS_PER_BYTE))
    return bytes(sum(trit * 3**place for place, trit in enumerate(five)) % 256 for five in fives)
