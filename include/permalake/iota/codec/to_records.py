"""Rows of the columns to the records that :mod:`~permalake.iota.codec.encode` writes.

For readers of single blocks, and for transactions that are judged one by one; whole days stay in columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np

from permalake.arrays.cursor import I64, U8, expand
from permalake.iota.codec.blocks import MILESTONE, NO_PAYLOAD, TAGGED_DATA, Blocks
from permalake.iota.codec.encode import ReferenceUnlock, SignatureUnlock, TaggedData, Transaction
from permalake.iota.codec.encode_outputs import NO_ID, Address, NativeToken, Output
from permalake.iota.codec.milestones import Milestone
from permalake.iota.codec.outputs import ALIAS, NFT, Addresses, Outputs, Protocol
from permalake.iota.codec.transactions import Parts

Payload: TypeAlias = TaggedData | Transaction | Milestone
Element = TypeVar("Element")


@dataclass(frozen=True)
class BlockRecord:
    """A block or message; ``network_id`` is the Chrysalis message's."""

    parents: tuple[bytes, ...]
    payload: Payload | None
    nonce: int
    network_id: int


def _cut(data: U8, start: int, length: int) -> bytes:
    return data[start : start + length].tobytes()


def output_record(outputs: Outputs, row: int) -> Output:
    """Return the output of a row."""
    return output_records(outputs, np.array([row]))[0]


def output_records(outputs: Outputs, rows: I64) -> list[Output]:
    """Return the outputs of some rows."""
    taken = outputs.take(rows)
    columns: dict[str, Sequence[Any]] = {
        "kind": taken.kind.tolist(),
        "amount": taken.amount.tolist(),
        "address": _addresses(taken.address),
        "native_tokens": _native_tokens(taken),
        "storage_return": _with_values(taken.storage_return, taken.storage_return_amount),
        "timelock": taken.timelock_time.tolist(),
        "expiration": _with_values(taken.expiration_return, taken.expiration_time),
        "state_controller": _addresses(taken.state_controller),
        "governor": _addresses(taken.governor),
        "sender": _addresses(taken.sender),
        "issuer": _addresses(taken.issuer),
        "metadata": _cuts(taken.data, taken.metadata_start, taken.metadata_length),
        "tag": _cuts(taken.data, taken.tag_start, taken.tag_length),
        "immutable_metadata": _cuts(
            taken.data, taken.immutable_metadata_start, taken.immutable_metadata_length
        ),
        "chain_id": _chain_ids(taken),
        "state_index": taken.state_index.tolist(),
        "state_metadata": _cuts(taken.data, taken.state_metadata_start, taken.state_metadata_length),
        "foundry_counter": taken.foundry_counter.tolist(),
        "serial_number": taken.serial_number.tolist(),
        "minted": _u256s(taken.minted),
        "melted": _u256s(taken.melted),
        "maximum": _u256s(taken.maximum),
    }
    return [
        Output(*values) for values in zip(*(columns[field.name] for field in fields(Output)), strict=True)
    ]


def _rows(values: U8) -> list[bytes]:
    """Return the rows of u8[k, w]."""
    raw, width = values.tobytes(), values.shape[1]
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def _cuts(data: U8, start: I64, length: I64) -> list[bytes]:
    places = zip(start.tolist(), length.tolist(), strict=True)
    return [_cut(data, at, size) if size else b"" for at, size in places]


def _addresses(addresses: Addresses) -> list[Address | None]:
    pairs = zip(addresses.kind.tolist(), _rows(addresses.value), strict=True)
    return [None if kind < 0 else Address(kind, value) for kind, value in pairs]


def _with_values(addresses: Addresses, values: I64) -> list[tuple[Address, int] | None]:
    pairs = zip(_addresses(addresses), values.tolist(), strict=True)
    return [(address, value) if address else None for address, value in pairs]


def _native_tokens(outputs: Outputs) -> list[tuple[NativeToken, ...]]:
    pairs = zip(_rows(outputs.native_token_id), _u256s(outputs.native_token_amount), strict=True)
    tokens = tuple(NativeToken(token_id, amount) for token_id, amount in pairs)
    return [tokens[begin:end] for begin, end in pairwise(outputs.native_token_offset.tolist())]


def _chain_ids(outputs: Outputs) -> list[bytes]:
    pairs = zip(outputs.kind.tolist(), _rows(outputs.chain_id[:, :32]), strict=True)
    return [chain_id if kind in (ALIAS, NFT) else NO_ID for kind, chain_id in pairs]


def _u256s(values: U8) -> list[int]:
    return [int.from_bytes(value, "little") for value in _rows(values)]


def transaction_record(blocks: Blocks, row: int, protocol: Protocol) -> Transaction:
    """Return the ``row``-th of the blocks' transactions."""
    return transaction_records(blocks, np.array([row]), protocol)[0]


def transaction_records(blocks: Blocks, rows: I64, protocol: Protocol) -> list[Transaction]:
    """Return some of the blocks' transactions; ``rows`` ascend."""
    parts = blocks.transactions
    inputs, outputs, unlocks = (_of(parts, rows) for parts in (parts.inputs, parts.outputs, parts.unlocks))
    last = outputs.at[outputs.ends - 1]
    behind_outputs = parts.outputs.start[last] + parts.outputs.length[last] + 4
    has_payload = parts.essence_start[rows] + parts.essence_length[rows] > behind_outputs
    columns = (
        inputs.split(
            [
                (output_id[:32], int.from_bytes(output_id[32:], "little"))
                for output_id in _rows(parts.inputs.output_id[inputs.at])
            ]
        ),
        outputs.split(output_records(parts.output, outputs.at)),
        unlocks.split(_unlocks(blocks, unlocks.at)),
        has_payload.tolist(),
        parts.block[rows].tolist(),
        parts.network_id[rows].tolist(),
        _rows(parts.inputs_commitment[rows]),
    )
    return [
        Transaction(
            inputs=spent,
            outputs=made,
            unlocks=unlocking,
            payload=tagged_data_record(blocks, block) if has else None,
            network_id=network_id if protocol == "stardust" else 0,
            inputs_commitment=commitment,
        )
        for spent, made, unlocking, has, block, network_id, commitment in zip(*columns, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Own:
    """Elements of some transactions: their rows ``at``, and where each transaction's end among them."""

    at: I64
    ends: I64

    def split(self, elements: list[Element]) -> list[tuple[Element, ...]]:
        return [tuple(elements[begin:end]) for begin, end in pairwise([0, *self.ends.tolist()])]


def _of(parts: Parts, rows: I64) -> _Own:
    begin, end = (parts.transaction.searchsorted(rows, side) for side in ("left", "right"))
    row, index = expand(end - begin)
    return _Own(begin[row] + index, np.cumsum(end - begin))


def _unlocks(blocks: Blocks, rows: I64) -> list[SignatureUnlock | ReferenceUnlock]:
    unlocks, data = blocks.transactions.unlocks, blocks.data
    columns = (unlocks.kind[rows].tolist(), unlocks.reference[rows].tolist(), unlocks.start[rows].tolist())
    return [
        ReferenceUnlock(kind, reference)
        if kind
        else SignatureUnlock(_cut(data, start + 2, 32), _cut(data, start + 34, 64))
        for kind, reference, start in zip(*columns, strict=True)
    ]


def tagged_data_record(blocks: Blocks, row: int) -> TaggedData:
    """Return the tagged data of a block, or of the transaction in it."""
    tag = _cut(blocks.data, blocks.tag_start[row], blocks.tag_length[row])
    return TaggedData(tag, _cut(blocks.data, blocks.tag_data_start[row], blocks.tag_data_length[row]))


def block_record(blocks: Blocks, row: int, protocol: Protocol) -> BlockRecord:
    """Return the block of a well-formed row."""
    parents = blocks.parent[blocks.parent_offset[row] : blocks.parent_offset[row + 1]]
    return BlockRecord(
        parents=tuple(parent.tobytes() for parent in parents),
        payload=_payload(blocks, row, protocol),
        nonce=int(blocks.nonce[row]),
        network_id=int(blocks.network_id[row]),
    )


def _payload(blocks: Blocks, row: int, protocol: Protocol) -> Payload | None:
    kind = blocks.payload_kind[row]
    if kind == NO_PAYLOAD:
        return None
    if kind == TAGGED_DATA:
        return tagged_data_record(blocks, row)
    if kind == MILESTONE:
        return blocks.milestones[row]
    return transaction_record(blocks, int(blocks.transactions.block.searchsorted(row)), protocol)
