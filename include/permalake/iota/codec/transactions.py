"""Transaction payloads as columns (TIP-7 on Chrysalis, TIP-20 on Stardust)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from permalake.arrays.cursor import (
    I64,
    PADDING,
    U8,
    U64,
    Cursor,
    Mask,
    blake2b_rows,
    bytes_at,
    disordered,
    duplicated,
    expand,
    uint_at,
)
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.layout import MAX_TAG, Layout
from permalake.iota.codec.outputs import Outputs

INPUT_WIDTH = 35
SIGNATURE_WIDTH = 98
REFERENCE_WIDTH = 3
SIGNATURE, REFERENCE = 0, 1


@dataclass
class Parts:
    """Elements of the transactions' lists, ordered by (transaction, idx), with their slices."""

    transaction: I64
    idx: I64
    start: I64
    length: I64

    def __len__(self) -> int:
        return len(self.start)


@dataclass
class Inputs(Parts):
    """Inputs; ``output_id`` u8[k, 34] is transaction id || u16 LE index."""

    output_id: U8


@dataclass
class Unlocks(Parts):
    """Unlocks; ``kind`` u8[k] 0 signature, 1 reference, 2 alias, 3 NFT.

    ``reference`` i64[k] is the unlock referred to, -1 for signatures, whose public key lies at start + 2 and
    signature at start + 34.
    """

    kind: U8
    reference: I64


@dataclass
class Transactions:
    """t transactions in block order. The BLAKE2b-256 hash of the essence is signed.

    ``network_id`` u64[t] and ``inputs_commitment`` u8[t, 32] are the essence's (zero on Chrysalis, which
    has the network id in the message). ``output`` is parallel to ``outputs``.
    """

    block: I64
    transaction_id: U8
    network_id: U64
    inputs_commitment: U8
    essence_start: I64
    essence_length: I64
    inputs: Inputs
    unlocks: Unlocks
    outputs: Parts
    output: Outputs

    def __len__(self) -> int:
        return len(self.block)


@dataclass
class Tags:
    """Positions of tag and data of every row; length 0 where there is none."""

    start: I64
    length: I64
    data_start: I64
    data_length: I64

    @classmethod
    def none(cls, rows: int) -> Tags:
        """Return ``rows`` absent tags."""
        return cls(*(np.zeros(rows, np.int64) for _ in range(4)))

    def put(self, rows: I64, other: Tags) -> None:
        """Set some rows."""
        self.start[rows], self.length[rows] = other.start, other.length
        self.data_start[rows], self.data_length[rows] = other.data_start, other.data_length


def read_tagged_data(cursor: Cursor, layout: Layout) -> Tags:
    """Read tagged data (TIP-23) or indexation (TIP-6) after its payload type, to the end of every row."""
    length = cursor.u16() if layout.tag_length_bytes == 2 else cursor.u8()
    cursor.fail((length > MAX_TAG) | (length < layout.min_tag), Fault.TAG_LENGTH)
    start = cursor.take(length)
    data_length = cursor.u32()
    data_start = cursor.take(data_length)
    cursor.fail(cursor.position != cursor.end, Fault.PAYLOAD_LENGTH)
    return Tags(start, length, data_start, data_length)


def read_transactions(cursor: Cursor, block: I64, layout: Layout) -> tuple[Transactions, Tags]:
    """Read transactions after their payload type, to the end of every row.

    ``block`` is the block of every row of ``cursor``. Faults go to ``cursor.error``; malformed rows are not
    among the transactions returned. Tags are parallel to ``cursor``.
    """
    payload_start = cursor.position - 4
    essence_start = cursor.position
    rows = len(cursor)
    cursor.fail(cursor.u8() != layout.essence, Fault.ESSENCE_KIND)
    network_id = cursor.u64() if layout.stardust else np.zeros(rows, np.uint64)
    inputs, input_count = _read_inputs(cursor, layout)
    commitment = cursor.bytes(32) if layout.stardust else np.zeros((rows, 32), np.uint8)
    outputs = _find_outputs(cursor, layout)
    tags = _read_essence_payload(cursor, layout)
    essence_length = cursor.position - essence_start
    unlocks = _read_unlocks(cursor, input_count, layout)
    cursor.fail(cursor.position != cursor.end, Fault.PAYLOAD_LENGTH)
    output = _decode_outputs(cursor, outputs, layout)

    fine = np.flatnonzero(cursor.fine)
    if len(fine) < rows:
        inputs, unlocks, outputs, output = _without_faulty(cursor.fine, inputs, unlocks, outputs, output)
    payload_length = cursor.end[fine] - payload_start[fine]
    return Transactions(
        block=block[fine],
        transaction_id=blake2b_rows(cursor.data, payload_start[fine], payload_length),
        network_id=network_id[fine],
        inputs_commitment=commitment[fine],
        essence_start=essence_start[fine],
        essence_length=essence_length[fine],
        inputs=inputs,
        unlocks=unlocks,
        outputs=outputs,
        output=output,
    ), tags


@cache
def no_transactions(layout: Layout) -> Transactions:
    """Return what :func:`read_transactions` gives for no rows: to read none takes as long as to read one."""
    none = np.zeros(0, np.int64)
    padding = np.zeros(PADDING, np.uint8)
    return read_transactions(Cursor(padding, none, none), none, layout)[0]


def _read_inputs(cursor: Cursor, layout: Layout) -> tuple[Inputs, I64]:
    count = cursor.u16()
    cursor.fail((count == 0) | (count > layout.max_inputs), Fault.INPUT_COUNT)
    begin = cursor.take(np.where(cursor.fine, count, 0) * INPUT_WIDTH)
    count = np.where(cursor.fine, count, 0)
    row, index = expand(count)
    start = begin[row] + index * INPUT_WIDTH
    output_id = bytes_at(cursor.data, start + 1, INPUT_WIDTH - 1)
    rows = len(cursor)
    _fail_rows(cursor, row[cursor.data[start] != 0], Fault.INPUT_KIND)
    output_index = uint_at(cursor.data, start + 33, 2)
    _fail_rows(cursor, row[output_index >= layout.max_inputs], Fault.INPUT_INDEX)
    cursor.fail(duplicated(row, output_id, rows), Fault.INPUT_DUPLICATE)
    if not layout.stardust:
        cursor.fail(disordered(row, output_id, rows), Fault.INPUT_ORDER)
    return Inputs(row, index, start, np.full(len(row), INPUT_WIDTH), output_id), count


def _fail_rows(cursor: Cursor, rows: I64, fault: Fault) -> None:
    if len(rows):
        where = np.zeros(len(cursor), bool)
        where[rows] = True
        cursor.fail(where, fault)


def _find_outputs(cursor: Cursor, layout: Layout) -> Parts:
    """Return where the outputs lie, walking over the n-th output of every transaction at once."""
    count = cursor.u16()
    cursor.fail((count == 0) | (count > layout.max_inputs), Fault.OUTPUT_COUNT)
    spans: list[tuple[I64, I64, I64, I64]] = []
    active = np.flatnonzero(cursor.fine)
    for index in range(layout.max_inputs):
        active = active[count[active] > index]
        if not len(active):
            break
        step = cursor.at(active)
        start = step.position
        layout.skip_output(step)
        spans.append((active, np.full(len(active), index), start, step.position - start))
        cursor.put(active, step)
        active = active[step.fine]
    return _ordered(spans)


def _ordered(spans: list[tuple[I64, I64, I64, I64]]) -> Parts:
    if not spans:
        return Parts(*(np.zeros(0, np.int64) for _ in range(4)))
    row, index, start, length = (np.concatenate(column) for column in zip(*spans, strict=True))
    order = np.argsort(row, kind="stable")
    return Parts(row[order], index[order], start[order], length[order])


def _read_essence_payload(cursor: Cursor, layout: Layout) -> Tags:
    length = cursor.u32()
    start = cursor.take(length)
    tags = Tags.none(len(cursor))
    rows = np.flatnonzero((length > 0) & cursor.fine)
    if len(rows):
        part = Cursor(cursor.data, start[rows], start[rows] + length[rows])
        part.fail(part.u32() != layout.tagged_data, Fault.ESSENCE_PAYLOAD)
        tags.put(rows, read_tagged_data(part, layout))
        cursor.error[rows] = part.error
    return tags


def _read_unlocks(cursor: Cursor, input_count: I64, layout: Layout) -> Unlocks:
    count = cursor.u16()
    cursor.fail(count != input_count, Fault.UNLOCK_COUNT)
    spans: list[tuple[I64, I64, I64, I64]] = []
    active = np.flatnonzero(cursor.fine)
    for index in range(layout.max_inputs):
        active = active[count[active] > index]
        if not len(active):
            break
        step = cursor.at(active)
        start = step.position
        kind = step.u8()
        step.fail(kind >= layout.unlock_kinds, Fault.UNLOCK_KIND)
        step.take(np.where(kind == SIGNATURE, SIGNATURE_WIDTH, REFERENCE_WIDTH) - 1)
        spans.append((active, np.full(len(active), index), start, step.position - start))
        cursor.put(active, step)
        active = active[step.fine]
    parts = _ordered(spans)
    kinds = cursor.data[parts.start]
    reference = uint_at(cursor.data, parts.start + 1, 2).astype(np.int64)
    reference[kinds == SIGNATURE] = -1
    unlocks = Unlocks(parts.transaction, parts.idx, parts.start, parts.length, kinds, reference)
    _check_unlocks(cursor, unlocks)
    return unlocks


def _check_unlocks(cursor: Cursor, unlocks: Unlocks) -> None:
    """Check that signatures are unique, references point back, and plain ones to a signature."""
    row, signed = unlocks.transaction, unlocks.kind == SIGNATURE
    _fail_rows(cursor, row[signed & (cursor.data[unlocks.start + 1] != 0)], Fault.SIGNATURE_KIND)
    _fail_rows(cursor, row[unlocks.reference >= unlocks.idx], Fault.UNLOCK_REFERENCE)
    plain = np.flatnonzero((unlocks.kind == REFERENCE) & (unlocks.reference < unlocks.idx))
    target = plain - unlocks.idx[plain] + unlocks.reference[plain]
    _fail_rows(cursor, row[plain[~signed[target]]], Fault.UNLOCK_REFERENCE)
    signature_rows = np.flatnonzero(signed)
    signature = bytes_at(cursor.data, unlocks.start[signature_rows] + 2, SIGNATURE_WIDTH - 2)
    cursor.fail(duplicated(row[signature_rows], signature, len(cursor)), Fault.UNLOCK_DUPLICATE)


def _decode_outputs(cursor: Cursor, parts: Parts, layout: Layout) -> Outputs:
    inner = Cursor(cursor.data, parts.start.copy(), parts.start + parts.length)
    output = layout.read_outputs(inner)
    # Backwards, so that the first faulty output of a transaction names its fault.
    wrong = np.flatnonzero((inner.error != 0) & cursor.fine[parts.transaction])[::-1]
    cursor.error[parts.transaction[wrong]] = inner.error[wrong]
    layout.check_outputs(cursor, parts.transaction, output)
    return output


def _without_faulty(
    fine: Mask, inputs: Inputs, unlocks: Unlocks, outputs: Parts, output: Outputs
) -> tuple[Inputs, Unlocks, Parts, Outputs]:
    number = np.cumsum(fine) - 1
    kept = np.flatnonzero(fine[inputs.transaction])
    own_inputs = Inputs(*_kept(inputs, kept, number), inputs.output_id[kept])
    kept = np.flatnonzero(fine[unlocks.transaction])
    own_unlocks = Unlocks(*_kept(unlocks, kept, number), unlocks.kind[kept], unlocks.reference[kept])
    kept = np.flatnonzero(fine[outputs.transaction])
    return own_inputs, own_unlocks, Parts(*_kept(outputs, kept, number)), output.take(kept)


def _kept(parts: Parts, kept: I64, number: I64) -> tuple[I64, I64, I64, I64]:
    return number[parts.transaction[kept]], parts.idx[kept], parts.start[kept], parts.length[kept]
