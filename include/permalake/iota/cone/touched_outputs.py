"""Outputs that included transactions and receipts create or consume, a row each."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64, load
from permalake.arrays.elements import Elements, indexed_ids
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


class ColumnsByName(Protocol):
    """Decoded rows; their columns by name."""

    def __len__(self) -> int:
        """Return the number of rows."""

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
    outputs = Elements(included["outputs"])
    data, start, _ = load(included["raw"])
    at, length = (
        outputs[name].to_numpy(zero_copy_only=False).astype(np.int64) for name in ("start", "length")
    )
    output_bytes = slices(data, start[outputs.row] + at, length)
    return _rows(
        _ids(included["transaction_id"], outputs), output_bytes, False, _place(included), outputs.row
    )


def _consumed(included: ColumnsByName) -> pa.Table:
    consumed = Elements(included["consumed"])
    return _rows(consumed["output_id"], consumed["data"], True, _place(included), consumed.row)


def _migrated(receipts: ColumnsByName) -> pa.Table:
    funds = Elements(pc.struct_field(receipts["receipt"], "funds"))
    last = pa.repeat(pa.scalar(_BEHIND_ALL, pa.int32()), len(receipts))
    place = (receipts["milestone_index"], last)
    return _rows(_ids(receipts["milestone_id"], funds), funds["data"], False, place, funds.row)


def _ids(ids: pa.Array, elements: Elements) -> pa.BinaryArray:
    """Return transaction (or milestone) id || u16 LE index."""
    return fixed(indexed_ids(ids, elements)).cast(pa.binary())


def _place(included: ColumnsByName) -> tuple[pa.Array, pa.Array]:
    return included["milestone_index"], included["white_flag_index"]


def _rows(
    output_id: pa.Array, data: pa.Array, is_spent: bool, place: tuple[pa.Array, pa.Array], row: I64
) -> pa.Table:
    places = (values.take(pa.array(row)) for values in place)
    return pa.table([output_id, data, pa.repeat(is_spent, len(row)), *places], schema=TOUCHED)
