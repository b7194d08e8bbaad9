"""Outputs that included transactions and receipts create or consume, a row each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64, bytes_at, load
from permalake.arrays.slices import fixed, slices

TOUCHED = pa.schema(
    [
        ("output_id", pa.binary()),
        ("data", pa.binary()),
        ("is_spent", pa.bool_()),
        ("milestone_index", pa.int32()),
        ("white_flag_index", pa.int32()),
    ]
)
"""``data``: the serialized output. The milestone and the place in its white-flag order are those of the
transaction that creates the output or consumes it (``is_spent``)."""

_BEHIND_ALL = 2**31 - 1  # A receipt's outputs are booked behind the milestone's transactions.
_ID = 32


def touched_outputs(included: pa.Table, receipts: pa.Table) -> pa.Table:
    """Return the outputs (:data:`TOUCHED`) of decoded rows.

    Args:
        included: Messages with an included transaction.
        receipts: Milestones with a receipt.
    """
    return pa.concat_tables([_created(included), _consumed(included), _migrated(receipts)])


def _created(included: pa.Table) -> pa.Table:
    outputs, row, idx = _elements(_column(included, "outputs"))
    data, start, _ = load(_column(included, "raw"))
    at, length = (
        pc.struct_field(outputs, name).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("start", "length")
    )
    own = slices(data, start[row] + at, length)
    return _rows(_ids(_column(included, "transaction_id"), row, idx), own, False, included, row)


def _consumed(included: pa.Table) -> pa.Table:
    outputs, row, _ = _elements(_column(included, "consumed"))
    output_id, data = (pc.struct_field(outputs, name) for name in ("output_id", "data"))
    return _rows(output_id, data, True, included, row)


def _migrated(receipts: pa.Table) -> pa.Table:
    funds, row, idx = _elements(pc.struct_field(_column(receipts, "receipt"), "funds"))
    last = pa.repeat(pa.scalar(_BEHIND_ALL, pa.int32()), receipts.num_rows)
    place = receipts.select(["milestone_index"]).append_column("white_flag_index", last)
    ids = _ids(_column(receipts, "milestone_id"), row, idx)
    return _rows(ids, pc.struct_field(funds, "data"), False, place, row)


def _rows(output_id: pa.Array, data: pa.Array, is_spent: bool, place: pa.Table, row: I64) -> pa.Table:
    at = pa.array(row)
    places = (_column(place, name).take(at) for name in ("milestone_index", "white_flag_index"))
    return pa.table([output_id, data, pa.repeat(is_spent, len(row)), *places], schema=TOUCHED)


def _ids(transaction_id: pa.Array, row: I64, idx: I64) -> pa.Array:
    """Return transaction (or milestone) id || u16 LE index."""
    data, start, _ = load(transaction_id)
    ids = bytes_at(data, start[row], _ID)
    return fixed(np.hstack([ids, idx.astype("<u2")[:, None].view(np.uint8)])).cast(pa.binary())


def _elements(lists: pa.ListArray) -> tuple[pa.StructArray, I64, I64]:
    """Return the elements of lists, each with its row and its position there."""
    count = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    row = np.repeat(np.arange(len(count)), count)
    return lists.flatten(), row, np.arange(len(row)) - (np.cumsum(count) - count)[row]


def _column(rows: pa.Table, name: str) -> pa.Array:
    joined = rows[name].combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
