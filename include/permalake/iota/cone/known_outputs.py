"""Conflict reasons of few transactions in this process: Spark would take longer to plan than to run.

The same as :func:`permalake.iota.cone.conflict_reasons.resolved` for a range without ``history``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.arrays.cursor import load
from permalake.arrays.slices import slices
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.conflict_reasons import ID, KEY, decided
from permalake.iota.cone.decoded import ARROW
from permalake.iota.cone.prove import Sink

_ROWS = 10_000
_PLACE = pa.struct([("m", pa.int32()), ("w", pa.int32())])
_KNOWN = pa.struct([("data", pa.binary()), ("created", _PLACE), ("spent", _PLACE)])


def resolved_here(
    pending: pa.Table, touched: ds.Dataset, protocol: Protocol, *, signatures: bool, sink: Sink
) -> Iterator[pa.RecordBatch]:
    """Yield what ``sink`` makes of pending messages as blocks with their conflict reasons, and of problems.

    Args:
        pending: Decoded rows of kind PENDING.
        touched: The range's outputs (:data:`~permalake.iota.cone.touched_outputs.TOUCHED`).
        protocol: Protocol of the network.
        signatures: Whether signatures are verified.
        sink: Takes the rows.
    """
    rows = pending.sort_by([(name, "ascending") for name in KEY]).combine_chunks()
    known = known_inputs(rows, touched)

    def groups() -> Iterator[pa.Table]:
        for batch in rows.append_column("known", known).to_batches(max_chunksize=_ROWS):
            told = decided(batch, protocol, signatures=signatures, complete=False)
            yield pa.Table.from_batches(told, ARROW)

    yield from sink(groups())


def known_inputs(pending: pa.Table, touched: ds.Dataset) -> pa.ListArray:
    """Return what is known of each message's inputs: lists of (data, created, spent), null where nothing is.

    The latter two are places in white-flag order (milestone index, white-flag index).
    """
    inputs = pending["inputs"].combine_chunks()
    count = pc.fill_null(pc.list_value_length(inputs), 0).to_numpy().astype(np.int64)
    data, start, _ = load(pending["raw"])
    at = pc.struct_field(inputs.flatten(), "start").to_numpy().astype(np.int64)
    row = np.repeat(np.arange(len(count)), count)
    ids = slices(data, start[row] + at + 1, np.full(len(row), ID))
    places = _places(touched.to_table(filter=pc.field("output_id").isin(pc.unique(ids))))
    nothing = dict.fromkeys(_KNOWN.names)
    told = pa.array([places.get(name, nothing) for name in ids.to_pylist()], _KNOWN)
    return pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(count)]).astype(np.int32), told)


def _places(touched: pa.Table) -> dict[bytes, dict[str, object]]:
    """Return what is known of outputs, by id: their bytes, and where they were first created and spent."""
    order = [("output_id", "ascending"), *((name, "descending") for name in KEY)]
    found: dict[bytes, dict[str, object]] = {}
    for row in touched.sort_by(order).to_pylist():
        one = found.setdefault(row["output_id"], dict.fromkeys(_KNOWN.names))
        one["data"] = row["data"]
        one["spent" if row["is_spent"] else "created"] = dict(
            zip(_PLACE.names, (row[name] for name in KEY), strict=True)
        )
    return found
