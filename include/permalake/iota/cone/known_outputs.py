"""Conflict reasons of few transactions in one process: Spark would take longer to plan than to run.

The same as :func:`permalake.iota.cone.conflict_reasons.resolved` for a range without ``history``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.arrays.cursor import I64, load
from permalake.arrays.elements import Elements
from permalake.arrays.slices import slices
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.conflict_reasons import ID, KEY, decided
from permalake.iota.cone.decoded import ARROW
from permalake.iota.cone.prove import Sink

_ROWS = 10_000
_NEVER = np.iinfo(np.int64).max
_PLACE = pa.struct([("m", pa.int32()), ("w", pa.int32())])


def resolved_here(
    pending: ds.Dataset, touched: ds.Dataset, protocol: Protocol, *, signatures: bool, sink: Sink
) -> Iterator[pa.RecordBatch]:
    """Yield what ``sink`` makes of pending messages as blocks with their conflict reasons, and of problems.

    Args:
        pending: Decoded rows of kind PENDING, in order. They are read twice and never held at once.
        touched: The range's outputs (:data:`~permalake.iota.cone.touched_outputs.TOUCHED`).
        protocol: Protocol of the network.
        signatures: Whether signatures are verified.
        sink: Takes the rows.
    """
    known = KnownOutputs.of(touched, _all_inputs(pending))

    def groups() -> Iterator[pa.Table]:
        for batch in pending.to_batches(batch_size=_ROWS):
            if batch.num_rows:
                both = batch.append_column("known", known.inputs(batch))
                told = decided(both, protocol, signatures=signatures, complete=False)
                yield pa.Table.from_batches(told, ARROW)

    yield from sink(groups())


@dataclass(frozen=True)
class KnownOutputs:
    """What a range tells of some outputs, a row each.

    Attributes:
        output_id: Their ids.
        known: Structs (data, created, spent), null where nothing is known. The latter two are the first
            places in white-flag order (milestone index, white-flag index).
    """

    output_id: pa.BinaryArray
    known: pa.StructArray

    @classmethod
    def of(cls, touched: ds.Dataset, wanted: pa.BinaryArray) -> Self:
        """Return what is known of ``wanted`` outputs, which are distinct."""
        rows = touched.to_table(filter=pc.field("output_id").isin(wanted)).combine_chunks()
        at = pc.index_in(rows["output_id"], wanted).combine_chunks().to_numpy()
        milestone, index = (rows[name].to_numpy().astype(np.int64) for name in KEY)
        place, is_spent = (milestone << 31) | index, rows["is_spent"].to_numpy()
        told = np.flatnonzero(rows["data"].is_valid())
        source = np.full(len(wanted), -1)
        source[at[told]] = told
        data = rows["data"].combine_chunks().take(pa.array(source, mask=source < 0))
        firsts = (_firsts(len(wanted), at[which], place[which]) for which in (~is_spent, is_spent))
        return cls(wanted, pa.StructArray.from_arrays([data, *firsts], ["data", "created", "spent"]))

    def inputs(self, pending: pa.RecordBatch) -> pa.ListArray:
        """Return what is known of each message's inputs, as lists."""
        ids, count = _inputs(pending)
        offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, self.known.take(pc.index_in(ids, self.output_id)))


def _all_inputs(pending: ds.Dataset) -> pa.BinaryArray:
    batches = pending.to_batches(columns=["inputs", "raw"], batch_size=_ROWS)
    return pc.unique(pa.chunked_array([_inputs(batch)[0] for batch in batches], pa.binary()))


def _inputs(pending: pa.RecordBatch) -> tuple[pa.BinaryArray, I64]:
    """Return the output ids of all inputs, and how many inputs each message has."""
    inputs = Elements(pending["inputs"])
    data, start, _ = load(pending["raw"])
    at = inputs["start"].to_numpy().astype(np.int64) + 1
    ids = slices(data, start[inputs.row] + at, np.full(len(inputs), ID))
    return ids, np.bincount(inputs.row, minlength=pending.num_rows)


def _firsts(outputs: int, at: I64, place: I64) -> pa.StructArray:
    """Return the first place of each output, null where there is none; ``at`` is the output of a place."""
    first = np.full(outputs, _NEVER)
    np.minimum.at(first, at, place)
    parts = [pa.array((first >> 31).astype(np.int32)), pa.array((first & (2**31 - 1)).astype(np.int32))]
    return pa.StructArray.from_arrays(parts, fields=list(_PLACE), mask=pa.array(first == _NEVER))
