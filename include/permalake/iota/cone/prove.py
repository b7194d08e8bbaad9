"""The one pass over a range of days: records of milestones → proven, decoded rows in white-flag order.

Records are cut into chunks of contiguous milestones, each with the milestones before it that its cones may
refer to, shuffled once by chunk and streamed through Arrow; memory is bounded by some milestones
(:mod:`permalake.iota.cone.packs`) and an Arrow batch, not by the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from permalake.iota.cone.batch import ConeState, MilestoneBatch, undecodable
from permalake.iota.cone.decoded import ARROW, DECODED
from permalake.iota.cone.decoded_rows import problem_rows, rows_of
from permalake.iota.cone.ledger_proof import check_ledger
from permalake.iota.cone.milestone_proof import prove
from permalake.iota.cone.packs import Chunks, Packing, unpacked
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import Record

_CHUNKS_PER_CORE = 4
_SMALLEST, _LARGEST = 64, 4096


class Sink(Protocol):
    """A task's work on decoded rows, and the schema of its result."""

    @property
    def schema(self) -> StructType | str:
        """Schema of the returned batches."""

    def __call__(self, groups: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Take decoded rows, in groups of whole milestones."""


class AsRows:
    """The sink that returns the decoded rows (:data:`permalake.iota.cone.decoded.DECODED`)."""

    schema = DECODED

    def __call__(self, groups: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Return the rows."""
        for group in groups:
            yield from group.to_batches()


def decoded(records: Callable[[Packing], DataFrame], rules: ConeRules, sink: Sink = AsRows()) -> DataFrame:  # noqa: B008
    """Return what ``sink`` makes of the decoded rows of the days' records, which are asked for packed."""
    chunks = chunks_of(rules, SparkSession.active().sparkContext.defaultParallelism)
    return (
        records(chunks)
        .repartitionById(chunks.count, F.col("chunk"))
        .sortWithinPartitions("chunk", "place")
        .mapInArrow(_pass(rules, sink), sink.schema)
    )


def chunks_of(rules: ConeRules, cores: int) -> Chunks:
    """Return the chunks of the days, several for a core."""
    first, last = rules.days[0].first, rules.days[-1].last
    even = (last - first + 1) // (_CHUNKS_PER_CORE * cores)
    size = max(min(max(even, _SMALLEST), _LARGEST), rules.look_back)
    return Chunks(first, size, (last - first) // size + 1, rules.look_back)


def _pass(rules: ConeRules, sink: Sink) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        state = ConeState(rules.look_back)
        for table in whole_milestones(unpacked(batches)):
            rows, state = decoded_or_refused(table, rules, state)
            yield rows

    return lambda batches: sink(groups(batches))


def decoded_or_refused(table: pa.Table, rules: ConeRules, state: ConeState) -> tuple[pa.Table, ConeState]:
    """Return the decoded rows of whole milestones, and the state with which the next ones go on.

    When something raises, the milestones are halved until the one that it raises for is alone: it refuses its
    day, and counts as referenced for those that follow.
    """
    after = state.copy()
    try:
        return pa.Table.from_batches(decode(table, rules, after), ARROW), after
    except (MemoryError, OSError):
        raise  # says nothing of a milestone
    except Exception as error:  # noqa: BLE001
        milestone = table["milestone"].to_numpy()
        if milestone[0] == milestone[-1]:
            return _refused(table, rules, state, error)
        cut = int((milestone <= (int(milestone[0]) + int(milestone[-1])) // 2).sum())
        before, state = decoded_or_refused(table.slice(0, cut).combine_chunks(), rules, state)
        behind, state = decoded_or_refused(table.slice(cut).combine_chunks(), rules, state)
        return pa.concat_tables([before, behind]), state


def _refused(
    table: pa.Table, rules: ConeRules, state: ConeState, error: Exception
) -> tuple[pa.Table, ConeState]:
    index = int(table["milestone"][0].as_py())
    blocks = table.filter(pc.equal(table["kind"], int(Record.BLOCK)))["raw"].to_pylist()
    state.remember(index, [blake2b(raw, digest_size=32).digest() for raw in blocks])
    state.last = (index, None)
    is_context = pc.all(table["context"]).as_py()
    problems = [] if is_context else [undecodable(index, error)]
    rows = problem_rows(problems, [rules.day(index).date for _ in problems])
    return pa.Table.from_batches([rows], ARROW), state


def decode(table: pa.Table, rules: ConeRules, state: ConeState) -> Iterator[pa.RecordBatch]:
    """Return decoded rows of whole milestones (records sorted by milestone and kind).

    ``state`` goes on to the milestones that follow.
    """
    batch = MilestoneBatch.of(table, rules.protocol)
    cones = prove(batch, rules, state)
    ledger = check_ledger(batch, cones, rules)
    yield from rows_of(batch, cones, ledger, rules)


def whole_milestones(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Regroup sorted record batches so that no milestone is split between two tables."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        milestone = batch.column("milestone").to_numpy()
        begins = (
            int(np.flatnonzero(milestone != milestone[-1])[-1]) + 1 if milestone[0] != milestone[-1] else 0
        )
        if begins or (held and held[-1].column("milestone")[-1].as_py() != milestone[0]):
            done = [*held, batch.slice(0, begins)]
            yield pa.Table.from_batches([part for part in done if part.num_rows]).combine_chunks()
            held = []
        held.append(batch.slice(begins))
    if held:
        yield pa.Table.from_batches(held).combine_chunks()
