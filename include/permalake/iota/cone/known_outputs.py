"""The history of the outputs that conflicting transactions would consume, and the reasons that follow.

What the range created and consumed tells of them, and the published days before where a source gives no
reasons. A task holds the few rows that meet its transactions' inputs; the rest it reads past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.arrays.cursor import I64, load
from permalake.arrays.elements import Elements
from permalake.arrays.slices import slices
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.conflict_reasons import ID, KEY, decided, rank
from permalake.iota.cone.decoded import ARROW
from permalake.iota.cone.ledger_history import EarlierOutputs
from permalake.iota.cone.prove import Sink

_ROWS = 10_000
_NEVER = np.iinfo(np.int64).max


def resolved(
    pending: ds.Dataset,
    touched: ds.Dataset,
    protocol: Protocol,
    *,
    ends: Mapping[date, int],
    signatures: bool = True,
    is_copy: bool = False,
    earlier: EarlierOutputs | None = None,
    sink: Sink,
) -> Iterator[pa.RecordBatch]:
    """Yield what ``sink`` makes of pending messages as blocks with their conflict reasons, and of problems.

    There is a problem, which breaks nothing, for each message to which the source gives another reason.

    Args:
        pending: Decoded rows of kind PENDING, in order. They are read twice and never held at once.
        touched: The range's outputs (:data:`~permalake.iota.cone.touched_outputs.TOUCHED`).
        protocol: Protocol of the network.
        ends: The last milestone of each day of the range: what lies after it tells nothing of the day.
        signatures: Whether signatures are verified.
        is_copy: Whether the source is a publisher: its days keep its reasons, unknown ones too.
        earlier: The outputs of the days before the range.
        sink: Takes the rows.
    """
    output_ids = _all_inputs(pending)
    rows = [touched.to_table(filter=pc.field("output_id").isin(output_ids))]
    if earlier is not None:
        rows += earlier.rows(output_ids)
    input_outputs = KnownOutputs.of(rows, output_ids)

    def groups() -> Iterator[pa.Table]:
        for batch in pending.to_batches(batch_size=_ROWS):
            if batch.num_rows:
                both = batch.append_column("known", input_outputs.inputs(batch))
                batches = decided(both, protocol, ends, signatures=signatures, is_copy=is_copy)
                yield pa.Table.from_batches(batches, ARROW)

    yield from sink(groups())


@dataclass(frozen=True)
class KnownOutputs:
    """The history of some outputs, a row each.

    Attributes:
        output_id: Their ids.
        history: Structs (data, created, spent), null where nothing is known. The latter two are the first
            ranks in white-flag order (:func:`~permalake.iota.cone.conflict_reasons.rank`).
    """

    output_id: pa.BinaryArray
    history: pa.StructArray

    @classmethod
    def of(cls, touched: Iterable[pa.Table], output_ids: pa.BinaryArray) -> Self:
        """Return the history of these outputs, whose ids are distinct, from rows of touched outputs."""
        rows = pa.concat_tables(touched).combine_chunks()
        at = pc.index_in(rows["output_id"], output_ids).combine_chunks().to_numpy()
        milestone, index = (rows[name].to_numpy().astype(np.int64) for name in KEY)
        ranks, is_spent = rank(milestone, index), rows["is_spent"].to_numpy()
        with_bytes = np.flatnonzero(rows["data"].is_valid())[::-1]  # of several rows the first one counts
        source = np.full(len(output_ids), -1)
        source[at[with_bytes]] = with_bytes
        data = rows["data"].combine_chunks().take(pa.array(source, mask=source < 0))
        firsts = (_firsts(len(output_ids), at[which], ranks[which]) for which in (~is_spent, is_spent))
        return cls(output_ids, pa.StructArray.from_arrays([data, *firsts], ["data", "created", "spent"]))

    def inputs(self, pending: pa.RecordBatch) -> pa.ListArray:
        """Return what is known of each message's inputs, as lists."""
        ids, count = _inputs(pending)
        offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, self.history.take(pc.index_in(ids, self.output_id)))


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


def _firsts(outputs: int, at: I64, ranks: I64) -> pa.Int64Array:
    """Return the first rank of each output, null where there is none; ``at`` is the output of a rank."""
    first = np.full(outputs, _NEVER)
    np.minimum.at(first, at, ranks)
    return pa.array(first, mask=first == _NEVER)
