"""Blocks (Stardust, TIP-24) and messages (Chrysalis, TIP-6) as columns, a whole Arrow batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from permalake.arrays.cursor import (
    I64,
    U8,
    U64,
    Binary,
    Cursor,
    blake2b_rows,
    bytes_at,
    disordered,
    expand,
    load,
)
from permalake.iota.codec.faults import ERRORS, DecodeError, Fault
from permalake.iota.codec.layout import LAYOUTS, MAX_BLOCK, MAX_PARENTS, Layout
from permalake.iota.codec.milestones import Milestone, decode_milestone
from permalake.iota.codec.outputs import Protocol
from permalake.iota.codec.transactions import (
    Tags,
    Transactions,
    no_transactions,
    read_tagged_data,
    read_transactions,
)

# Values of ``payload_kind``, the same for both protocols.
NO_PAYLOAD, TRANSACTION, MILESTONE, TAGGED_DATA = range(4)


@dataclass
class Blocks:
    """n blocks. Positions point into ``data``; ``error`` holds a Fault per row.

    A malformed row has its id and slice; its other columns are empty. ``parent_offset`` i64[n + 1] delimits
    each row's ``parent`` u8[m, 32], in wire order. ``payload_*`` include the payload's u32 type. ``tag_*``
    belong to the payload or to the one inside the essence. ``milestones`` holds the decoded milestone
    payloads by row. ``network_id`` is the Chrysalis message's.
    """

    data: U8
    start: I64
    length: I64
    error: U8
    block_id: U8
    version: U8
    network_id: U64
    nonce: U64
    parent_offset: I64
    parent: U8
    payload_kind: U8
    payload_start: I64
    payload_length: I64
    tag_start: I64
    tag_length: I64
    tag_data_start: I64
    tag_data_length: I64
    transactions: Transactions
    milestones: dict[int, Milestone]

    def __len__(self) -> int:
        return len(self.start)

    def reason(self, row: int) -> str:
        """Return why the row is malformed, on one line; empty if it is well-formed."""
        return ERRORS[int(self.error[row])]


def decode_blocks(raw: Binary, protocol: Protocol) -> Blocks:
    """Decode a column of raw blocks: compute ids and check the protocol's syntactic rules.

    Proof of work, the network id and storage deposits are not checked: they need more than the block.
    """
    layout = LAYOUTS[protocol]
    data, start, length = load(raw)
    cursor = Cursor(data, start.copy(), start + length)
    cursor.fail(length > MAX_BLOCK, Fault.BLOCK_LENGTH)
    if layout.stardust:
        version, network_id = cursor.u8(), np.zeros(len(cursor), np.uint64)
        cursor.fail(version != 2, Fault.VERSION)
    else:
        version, network_id = np.ones(len(cursor), np.int64), cursor.u64()
    parent_start, parent_count = _read_parents(cursor)
    payload_length = cursor.u32()
    payload_start = cursor.take(payload_length)
    nonce = cursor.u64()
    cursor.fail(cursor.position != cursor.end, Fault.TRAILING)

    kind = np.zeros(len(cursor), np.uint8)
    rows = np.flatnonzero((payload_length > 0) & cursor.fine)
    payload = Cursor(data, payload_start[rows], payload_start[rows] + payload_length[rows])
    kind[rows] = _payload_kinds(payload, layout)
    tags = Tags.none(len(cursor))
    transactions = _read_payloads(payload, rows, kind, tags, layout)
    cursor.error[rows] = payload.error
    milestones = _read_milestones(cursor, kind, payload_start, payload_length, protocol)
    _check_milestone_parents(cursor, milestones, parent_start, parent_count)

    fine = cursor.fine
    count = np.where(fine, parent_count, 0)
    row, index = expand(count)
    return Blocks(
        data=data,
        start=start,
        length=length,
        error=cursor.error,
        block_id=blake2b_rows(data, start, length),
        version=np.where(fine, version, 0).astype(np.uint8),
        network_id=np.where(fine, network_id, 0).astype(np.uint64),
        nonce=np.where(fine, nonce, 0).astype(np.uint64),
        parent_offset=np.concatenate([np.zeros(1, np.int64), np.cumsum(count)]),
        parent=bytes_at(data, parent_start[row] + 32 * index, 32),
        payload_kind=np.where(fine, kind, 0).astype(np.uint8),
        payload_start=np.where(fine, payload_start, 0),
        payload_length=np.where(fine, payload_length, 0),
        tag_start=np.where(fine, tags.start, 0),
        tag_length=np.where(fine, tags.length, 0),
        tag_data_start=np.where(fine, tags.data_start, 0),
        tag_data_length=np.where(fine, tags.data_length, 0),
        transactions=transactions,
        milestones=milestones,
    )


def _read_parents(cursor: Cursor) -> tuple[I64, I64]:
    count = cursor.u8()
    cursor.fail((count == 0) | (count > MAX_PARENTS), Fault.PARENT_COUNT)
    start = cursor.take(np.where(cursor.fine, count, 0) * 32)
    count = np.where(cursor.fine, count, 0)
    row, index = expand(count)
    parent = bytes_at(cursor.data, start[row] + 32 * index, 32)
    cursor.fail(disordered(row, parent, len(cursor)), Fault.PARENT_ORDER)
    return start, count


def _payload_kinds(payload: Cursor, layout: Layout) -> U8:
    wire = payload.u32()
    kind = np.zeros(len(payload), np.uint8)
    kind[wire == layout.transaction] = TRANSACTION
    kind[wire == layout.milestone] = MILESTONE
    kind[wire == layout.tagged_data] = TAGGED_DATA
    payload.fail(kind == NO_PAYLOAD, Fault.PAYLOAD_KIND)
    kind[~payload.fine] = NO_PAYLOAD
    return kind


def _read_payloads(payload: Cursor, rows: I64, kind: U8, tags: Tags, layout: Layout) -> Transactions:
    """Read tagged data and transactions of ``payload``, whose rows are the blocks ``rows``."""
    part_rows = np.flatnonzero(kind[rows] == TAGGED_DATA)
    part = payload.at(part_rows)
    tags.put(rows[part_rows], read_tagged_data(part, layout))
    payload.put(part_rows, part)
    part_rows = np.flatnonzero(kind[rows] == TRANSACTION)
    if not len(part_rows):
        return no_transactions(layout)
    part = payload.at(part_rows)
    transactions, essence_tags = read_transactions(part, rows[part_rows], layout)
    tags.put(rows[part_rows], essence_tags)
    payload.put(part_rows, part)
    return transactions


def _read_milestones(
    cursor: Cursor, kind: U8, payload_start: I64, payload_length: I64, protocol: Protocol
) -> dict[int, Milestone]:
    milestones = {}
    rows = np.flatnonzero((kind == MILESTONE) & cursor.fine)
    ends = (payload_start[rows] + payload_length[rows]).tolist()
    for row, begin, end in zip(rows.tolist(), payload_start[rows].tolist(), ends, strict=True):
        try:
            milestones[row] = decode_milestone(cursor.data[begin:end].tobytes(), protocol)
        except DecodeError as error:
            cursor.error[row] = error.fault
    return milestones


def _check_milestone_parents(
    cursor: Cursor, milestones: dict[int, Milestone], parent_start: I64, parent_count: I64
) -> None:
    """Fail milestones whose parents differ from their block's (TIP-8, TIP-29)."""
    for row, milestone in list(milestones.items()):
        begin, end = int(parent_start[row]), int(parent_start[row] + 32 * parent_count[row])
        if cursor.data[begin:end].tobytes() != b"".join(milestone.parents):
            cursor.error[row] = Fault.MILESTONE_PARENTS
            del milestones[row]
