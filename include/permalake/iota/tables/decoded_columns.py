"""Columns that several tables take from decoded rows in Arrow (:mod:`permalake.iota.cone.decoded`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64, U8, load
from permalake.arrays.elements import Elements, indexed_ids
from permalake.arrays.hexa import hex_slices, to_hex
from permalake.arrays.slices import slices
from permalake.iota.cone.decoded import Row
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.contracts import IOTA_TABLES

_MICROSECONDS = 1_000_000


class DecodedRows:
    """Some decoded rows; their columns by name.

    ``places`` are those of the rows, ascending; None for all. A column is only picked when it is asked
    for: most readers of some rows need few of their columns.
    """

    def __init__(self, rows: pa.Table, chunk_size: int, places: I64 | None = None) -> None:
        self.chunk_size = chunk_size
        self._every, self._places = rows, places
        self._columns: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        return int(self._every.num_rows if self._places is None else len(self._places))

    def __getitem__(self, column: str) -> pa.Array:
        if column not in self._columns:
            self._columns[column] = self._picked(self._every[column])
        return self._columns[column]

    def _picked(self, values: pa.ChunkedArray) -> pa.Array:
        places = self._places
        if places is None:
            return _joined(values)
        if not len(places):
            return pa.array([], values.type)
        # What lies between the first row and the last one is seldom more than one chunk.
        first, last = int(places[0]), int(places[-1])
        near = _joined(values.slice(first, last - first + 1))
        return near if len(near) == len(places) else near.take(pa.array(places - first))

    def where(self, mask: pa.Array) -> DecodedRows:
        """Return some of the rows (mask)."""
        at = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        return DecodedRows(self._every, self.chunk_size, at if self._places is None else self._places[at])

    def of_kind(self, kind: Row) -> DecodedRows:
        """Return the rows of one kind."""
        return self.where(pc.equal(self["kind"], int(kind)))

    def in_state(self, state: InclusionState) -> DecodedRows:
        """Return the messages in a ledger inclusion state."""
        return self.where(pc.fill_null(pc.equal(self["inclusion_state"], int(state)), False))

    def elements(self, column: str) -> Elements:
        """Return the elements of a list column."""
        return Elements(self[column])

    @cached_property
    def message_id(self) -> pa.Array:
        """Hex of the messages' ids."""
        return hexed(self["message_id"])

    @cached_property
    def transaction_id(self) -> pa.Array:
        """Hex of the transactions' ids, null where there is none."""
        return hexed(self["transaction_id"])

    @cached_property
    def time(self) -> pa.Array:
        """Time of the milestones."""
        return pc.multiply(self["timestamp"], _MICROSECONDS).cast(pa.timestamp("us", "UTC"))

    def milestone(self) -> dict[str, pa.Array]:
        """Return the columns of the milestone: range, index, time and date."""
        index = self["milestone_index"]
        return {
            "ms_range_id": pc.divide(index, self.chunk_size).cast(pa.int32()),
            "milestone_index": index,
            "ms_timestamp": self.time,
            "date": self["date"],
        }

    @cached_property
    def _raw(self) -> tuple[U8, I64]:
        data, start, _ = load(self["raw"])
        return data, start

    def cut(self, row: I64, start: pa.Array, length: pa.Array) -> pa.Array:
        """Return slices of the rows' raw bytes, null where ``start`` is."""
        data, begin = self._raw
        places = (pc.fill_null(part, 0).to_numpy(zero_copy_only=False) for part in (start, length))
        at, size = (place.astype(np.int64) for place in places)
        cut = slices(data, begin[row] + at, size)
        return pc.if_else(pc.is_valid(start), cut, None) if start.null_count else cut


class DecodedRange:
    """The decoded rows of whole milestones, by what they are."""

    def __init__(self, rows: pa.Table, chunk_size: int) -> None:
        self.every = DecodedRows(rows, chunk_size)

    @cached_property
    def blocks(self) -> DecodedRows:
        """The messages; conflicting ones only once their reasons are known."""
        return self.every.of_kind(Row.BLOCK)

    @cached_property
    def included(self) -> DecodedRows:
        """The messages with an included transaction."""
        return self.blocks.in_state(InclusionState.INCLUDED)

    @cached_property
    def milestones(self) -> DecodedRows:
        """The milestones."""
        return self.every.of_kind(Row.MILESTONE)

    @cached_property
    def receipts(self) -> DecodedRows:
        """The milestones that carry a receipt."""
        return self.milestones.where(pc.is_valid(self.milestones["receipt"]))


def _joined(values: pa.ChunkedArray) -> pa.Array:
    chunks = [chunk for chunk in values.chunks if len(chunk)]
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], values.type)])


def hexed(values: pa.Array) -> pa.StringArray:
    """Return bytes as lower-case hex; null stays null."""
    text = hex_slices(*load(values))
    return pc.if_else(pc.is_valid(values), text, None) if values.null_count else text


def output_ids(transaction_id: pa.Array, elements: Elements) -> pa.StringArray:
    """Return transaction id (32 bytes, of each row) || u16 LE index, as hex."""
    return to_hex(indexed_ids(transaction_id, elements))


def spread(columns: Mapping[str, pa.Array], row: I64) -> dict[str, pa.Array]:
    """Return columns of rows as columns of their elements."""
    at = pa.array(row)
    return {name: values.take(at) for name, values in columns.items()}


def shaped(table: str, columns: Mapping[str, pa.Array], rows: int) -> pa.Table:
    """Return columns in the order and types of a table's contract; what is not given is null."""
    schema = IOTA_TABLES[table].arrow
    fields = [field.with_nullable(True) for field in schema]
    given = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in fields]
    return pa.table(
        [v if v.type == f.type else v.cast(f.type) for v, f in zip(given, fields, strict=True)],
        schema=pa.schema(fields),
    )
