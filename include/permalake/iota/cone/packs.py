"""Records on their way through Spark: those of neighbouring milestones packed into one value.

The pass needs its records by milestone, so they are shuffled once. As rows of their own they would be copied
into Java's form, sorted and copied back column by column, a million times for a million messages. Packed,
Java moves some thousand values, and order within one is made in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from permalake.iota.cone.source_records import RECORD, Record

PACK = t.StructType(
    [
        t.StructField("chunk", t.IntegerType(), False),
        t.StructField("place", t.IntegerType(), False),
        t.StructField("records", t.BinaryType(), False),
    ]
)
"""Some records of one chunk and place: Arrow, in the order of milestones and kinds."""
_PACK = to_arrow_schema(PACK)
_PACKED = to_arrow_schema(RECORD).append(pa.field("context", pa.bool_()))
# Milestones that share a place. They are in memory together, so that records need not come in order.
_MILESTONES = 16
# What is decoded at once has so many records, or those of one place.
_ROWS = 10_000


class Packing(Protocol):
    """The form in which tasks return the records that they read, and its schema."""

    @property
    def schema(self) -> t.StructType:
        """Schema of the returned batches."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take batches of records."""


class AsRecords:
    """The packing that returns the records themselves."""

    schema = RECORD

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the records."""
        yield from batches


AS_RECORDS = AsRecords()


def in_packs(records: DataFrame, packing: Packing) -> DataFrame:
    """Return a frame of records packed, of a source that has no task of its own for that."""
    return records if isinstance(packing, AsRecords) else records.mapInArrow(packing, packing.schema)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Contiguous milestones from ``first`` on, cut into ``count`` chunks of ``size``; packs records of each.

    A milestone's records are in its own chunk and, as context (milestones and blocks only), in the next one
    when that begins within ``look_back`` milestones, at most ``size``.
    """

    first: int
    size: int
    count: int
    look_back: int

    @property
    def schema(self) -> t.StructType:
        """Schema of the packs."""
        return PACK

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the records of each batch in packs."""
        for batch in batches:
            yield self._packs(batch)

    def _packs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        milestone = batch["milestone"].to_numpy().astype(np.int64)
        kind = batch["kind"].to_numpy()
        home = (milestone - self.first) // self.size
        near = (milestone - self.first + self.look_back) // self.size
        useful = (near != home) & ((kind == int(Record.MILESTONE)) | (kind == int(Record.BLOCK)))
        at_home = np.flatnonzero((home >= 0) & (home < self.count))
        nearby = np.flatnonzero(useful & (near >= 0) & (near < self.count))
        row = np.concatenate([at_home, nearby])
        chunk = np.concatenate([home[at_home], near[nearby]])
        order = np.lexsort((kind[row], milestone[row], chunk))
        row, chunk = row[order], chunk[order]
        place = milestone[row] // _MILESTONES
        records = _taken(batch, row)
        context = pa.array(order >= len(at_home))
        whole = pa.RecordBatch.from_arrays([*records.columns, context], schema=_PACKED)
        changes = (np.diff(chunk) != 0) | (np.diff(place) != 0)
        begins = np.concatenate([[0], np.flatnonzero(changes) + 1]) if len(row) else np.zeros(0, np.int64)
        ends = np.append(begins[1:], len(row))
        packs = [
            whole.slice(begin, end - begin).serialize().to_pybytes()
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=False)
        ]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(chunk[begins], pa.int32()),
                pa.array(place[begins], pa.int32()),
                pa.array(packs, pa.binary()),
            ],
            schema=_PACK,
        )


def unpacked(packs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the records of a chunk by milestone and kind; its packs come by place.

    A batch holds whole milestones.
    """
    held: list[pa.RecordBatch] = []
    last, rows = None, 0
    for batch in packs:
        for place, pack in zip(batch["place"].to_pylist(), batch["records"], strict=True):
            if place != last and rows >= _ROWS:
                yield _ordered(held)
                held, rows = [], 0
            records = pa.ipc.read_record_batch(pack.as_buffer(), _PACKED)
            held.append(records)
            last, rows = place, rows + records.num_rows
    if held:
        yield _ordered(held)


def _ordered(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    records = pa.concat_batches(batches)
    order = pc.sort_indices(records, [("milestone", "ascending"), ("kind", "ascending")])
    return _taken(records, order.to_numpy())


def _taken(records: pa.RecordBatch, rows: np.ndarray) -> pa.RecordBatch:
    is_all = len(rows) == records.num_rows and bool((np.diff(rows.astype(np.int64)) == 1).all())
    return records if is_all else records.take(pa.array(rows))
