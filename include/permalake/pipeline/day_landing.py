"""A step's intermediate rows: landed as files, which queries and Spark's frames both read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

import pyarrow as pa

from permalake.contracts.rows import Row
from permalake.engine.duckdb_engine import Rows
from permalake.engine.local_files import sendable
from permalake.engine.rows import Relation
from permalake.lake import Attempt
from permalake.net import object_storage
from permalake.pipeline.day_queries import DayQueries, QueriesOverFiles
from permalake.pipeline.landing import LANDED_RECORD, TaskOutput, Written
from permalake.pipeline.relations import over, result_batches, shaped
from permalake.spark.tasks import TaskShare, in_task, in_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FRAMES_AT_ONCE = 4
S = TypeVar("S")


@dataclass(frozen=True)
class DayLanding:
    """The folder in which a step lands rows.

    Attributes:
        spark: The session.
        folder: Location of the folder.
        rows: Returns the rows of a table, of the step's days.
    """

    spark: SparkSession
    folder: str
    rows: Rows

    @classmethod
    def of(cls, spark: SparkSession, attempt: Attempt) -> Self:
        """Return the landing folder of an attempt, with the rows that it has staged."""

        def staged(name: str) -> Relation:
            return attempt.staged.rows(name, attempt.start, attempt.end).scan()

        return cls(spark, attempt.landing, staged)

    def queries(self, queries: DayQueries, results: Mapping[str, pa.Schema]) -> Written:
        """Land the rows of queries with these columns and types; a query may read those before it."""
        return self._landed(queries.over(self.rows), results)

    def results(
        self, queries: Mapping[str, str], schemas: Mapping[str, pa.Schema], given: Mapping[str, Relation]
    ) -> Mapping[str, Relation]:
        """Return the landed rows of queries (see :class:`~permalake.pipeline.relations.QueryRunner`)."""
        return self._landed(over(queries, given), schemas).datasets

    def read(
        self, schema: pa.Schema, parts: Sequence[S], work: Callable[[S, TaskShare], Iterable[pa.RecordBatch]]
    ) -> Relation:
        """Return the rows that ``work`` makes of each part, in tasks that land them."""
        folder, file_io, name = self.folder, object_storage.file_io(), "rows"
        tasks = max(1, min(len(parts), 4 * self.spark.sparkContext.defaultParallelism))

        def land(some: Sequence[S], share: TaskShare) -> list[Row]:
            output = TaskOutput([], folder, {name: schema}, file_io)
            for part in some:
                for batch in work(part, share):
                    output.land(name, shaped(batch, schema))
            records: list[Row] = output.close().to_pylist()
            return records

        written = Written({name: schema})
        for records in in_tasks(self.spark, land, [parts[at::tasks] for at in range(tasks)]):
            written.add(records)
        return written.dataset(name)

    def frames(self, frames: Mapping[str, DataFrame], schemas: Mapping[str, pa.Schema]) -> Written:
        """Land the rows of frames, with these columns and types."""
        written = Written(schemas)
        landing = (
            frames[name].mapInArrow(self._frame_landing(name, schemas[name]), LANDED_RECORD)
            for name in frames
        )
        with ThreadPoolExecutor(_FRAMES_AT_ONCE) as pool:
            for records in pool.map(lambda frame: frame.collect(), landing):
                written.add(record.asDict() for record in records)
        return written

    def _landed(self, queries: QueriesOverFiles, schemas: Mapping[str, pa.Schema]) -> Written:
        folder, file_io = self.folder, object_storage.file_io()
        sent = QueriesOverFiles(
            queries.tables, {name: sendable(rows) for name, rows in queries.files.items()}, queries.functions
        )

        def work(share: TaskShare) -> list[Row]:
            output = TaskOutput([], folder, schemas, file_io)
            with sent.engine(share) as engine:
                for name, rows in result_batches(engine, sent.tables, schemas):
                    output.land(name, rows)
            records: list[Row] = output.close().to_pylist()
            return records

        written = Written(schemas)
        written.add(in_task(self.spark, work))
        return written

    def _frame_landing(
        self, name: str, schema: pa.Schema
    ) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        folder, file_io = self.folder, object_storage.file_io()

        def land(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            output = TaskOutput([], folder, {name: schema}, file_io)
            for batch in batches:
                output.land(name, shaped(batch, schema))
            yield output.close()

        return land
