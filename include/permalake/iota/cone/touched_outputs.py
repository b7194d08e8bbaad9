"""Outputs that included transactions and receipts create or consume, a row each."""

from __future__ import annotations

from typing import Protocol

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


class ColumnsByName(Protocol):
    """Decoded rows; their columns by name."""

    def __len__(self) -> int:
        """How many rows there are."""

    def __getitem__(self, column: str) -> pa.Array:
        """Return a column."""


def touched_outputs(included: ColumnsByName, receipts: ColumnsByName) -> pa.Table:
    """Return the outputs (:data:`TOUCHED`) of decoded rows.

    Args:
        included: Messages with an included transaction.
        receipts: Milestones with a receipt.
    """
    return pa.concat_tables([_created(included), _consumed(included), _migrated(receipts)])


def _created(included: ColumnsByName) -> pa.Table:
    outputs, row, idx = _elements(included["outputs"])
    data, start, _ = load(included["raw"])
    at, length = (
        pc.struct_field(outputs, name).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("start", "length")
    )
    own = slices(data, start[row] + at, length)
    return _rows(_ids(included["transaction_id"], row, idx), own, False, _place(included), row)


def _consumed(included: ColumnsByName) -> pa.Table:
    outputs, row, _ = _elements(included["consumed"])
    output_id, data = (pc.struct_field(outputs, name) for name in ("output_id", "data"))
    return _rows(output_id, data, True, _place(included), row)


def _migrated(receipts: ColumnsByName) -> pa.Table:
    funds, row, idx = _elements(pc.struct_field(receipts["receipt"], "funds"))
    last = pa.repeat(pa.scalar(_BEHIND_ALL, pa.int32()), len(receipts))
    place = (receipts["milestone_index"], last)
    ids = _ids(receipts["milestone_id"], row, idx)
    return _rows(ids, pc.struct_field(funds, "data"), False, place, row)


def _place(included: ColumnsByName) -> tuple[pa.Array, pa.Array]:
    return included["milestone_index"], included["white_flag_index"]


def _rows(
    output_id: pa.Array, data: pa.Array, is_spent: bool, place: tuple[pa.Array, pa.Array], row: I64
) -> pa.Table:
    places = (values.take(pa.array(row)) for values in place)
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
