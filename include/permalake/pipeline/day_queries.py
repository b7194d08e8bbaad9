"""Tables of days that are queries over other tables: executed and staged by DuckDB or by Spark.

DuckDB reads the staged files and writes files: in this process where the driver is the executor, in one of
Spark's tasks on a cluster. There, Spark itself executes queries that read frames beside the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.contracts.schema import DUCKDB_TYPES
from permalake.contracts.sql_functions import SqlFunction
from permalake.engine.duckdb_engine import DuckDBEngine, Rows
from permalake.engine.local_files import sendable
from permalake.engine.spark_engine import SparkEngine
from permalake.lake import Attempt
from permalake.lake.task_files import FileTarget, TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline import jobs
from permalake.spark.frames import in_a_task
from permalake.spark.sizes import TASK_MEMORY
from permalake.spark.submit import driver_memory, is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class LandedRows(Protocol):
    """Rows that an earlier step left for queries beside the staged tables."""

    @property
    def names(self) -> Iterable[str]:
        """Names by which queries read them."""

    @property
    def in_files(self) -> bool:
        """Whether they lie in files, so that no process has to hold them."""

    def dataset(self, name: str) -> ds.Dataset:
        """Return them for this process."""

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """Return them as a frame."""


class KnownFrames:
    """Frames that queries read beside the staged tables; where DuckDB executes them, they become Arrow."""

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self._frames = frames
        self.names = frozenset(frames)
        self.in_files = not frames

    def dataset(self, name: str) -> ds.Dataset:
        """Return the rows of a frame for this process."""
        return ds.dataset(self._frames[name].toArrow())

    def frame(self, _: SparkSession, name: str) -> DataFrame:
        """Return a frame."""
        return self._frames[name]


@dataclass(frozen=True)
class _SentRows:
    """Rows as they were sent to a task."""

    rows: Mapping[str, pa.Table | ds.Dataset]
    in_files: ClassVar = True

    @property
    def names(self) -> Iterable[str]:
        return self.rows

    def dataset(self, name: str) -> ds.Dataset:
        rows = self.rows[name]
        return ds.dataset(rows) if isinstance(rows, pa.Table) else rows

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        return spark.createDataFrame(self.dataset(name).to_table())


@dataclass(frozen=True)
class DayQueries:
    """Queries of tables, each by the name of its table.

    A query may read staged tables, what is ``landed``, and tables of other queries, and call ``functions``.
    """

    tables: Mapping[str, str]
    contracts: Mapping[str, Table]
    landed: LandedRows = field(default_factory=lambda: KnownFrames({}))
    functions: Sequence[SqlFunction] = ()

    def read(self, tables: Iterable[str]) -> set[str]:
        """Return what the queries of some tables read."""
        text = " ".join(self.tables[name] for name in tables)
        return names_in(text, {*self.contracts, *self.landed.names})

    @property
    def has_landed_rows(self) -> bool:
        """Whether something landed that the queries read has rows."""
        read = self.read(self.tables) & set(self.landed.names)
        return any(self.landed.dataset(name).head(1).num_rows for name in read)

    @property
    def sendable(self) -> DayQueries:
        """The queries with what landed as it can be sent to a task."""
        read = self.read(self.tables) & set(self.landed.names)
        return replace(self, landed=_SentRows({name: sendable(self.landed.dataset(name)) for name in read}))


def stage_queries(attempt: Attempt, queries: DayQueries, spark: Callable[[], SparkSession]) -> None:
    """Stage each table as the rows of its query.

    Raises:
        graphlib.CycleError: if queries read each other.
    """
    if not is_local() and not queries.landed.in_files:
        return _by_spark(attempt, queries, spark)
    made = [queries.contracts[name] for name in queries.tables]
    work = _Making(queries, tuple(attempt.targets(made)), object_storage.file_io())

    def rows(name: str) -> ds.Dataset:
        return attempt.files.rows(name, attempt.start, attempt.end).scan()

    written = work.done(rows, driver_memory()) if is_local() else work.sent(rows, spark())
    return attempt.stage_files(written, made)


def few_rows(queries: DayQueries, spark: Callable[[], SparkSession]) -> dict[str, list[dict[str, Any]]]:
    """Return the few rows of each query over what was landed; none where that has no rows."""
    if not queries.has_landed_rows:
        return {name: [] for name in queries.tables}
    if is_local():
        found = _tables(queries, driver_memory())
    else:
        sent = queries.sendable

        def task() -> Iterator[pa.RecordBatch]:
            for name, rows in _tables(sent, TASK_MEMORY, 1).items():
                with pa.BufferOutputStream() as stream, pa.ipc.new_stream(stream, rows.schema) as writer:
                    writer.write_table(rows)
                yield pa.RecordBatch.from_pydict({"name": [name], "rows": [stream.getvalue().to_pybytes()]})

        told = in_a_task(spark(), task, "name string, rows binary").collect()
        found = {row["name"]: pa.ipc.open_stream(bytes(row["rows"])).read_all() for row in told}
    return {name: rows.to_pylist() for name, rows in found.items()}


def _tables(queries: DayQueries, memory: str, threads: int | None = None) -> dict[str, pa.Table]:
    with duckdb_over(queries, _nothing, memory, threads) as engine:
        return {name: engine.table(query) for name, query in queries.tables.items()}


def _nothing(name: str) -> pa.Table:
    raise KeyError(name)


def levels(queries: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the tables in groups, each of which reads tables of earlier groups only."""
    order = TopologicalSorter({name: names_in(query, queries) for name, query in queries.items()})
    order.prepare()
    while order:
        ready = list(order.get_ready())
        yield ready
        order.done(*ready)


def names_in(query: str, names: Iterable[str]) -> set[str]:
    """Return which of the names a query reads."""
    return set(re.findall(r"\b(?:FROM|JOIN)\s+([a-z_]\w*)", query)) & set(names)


@dataclass(frozen=True)
class _Making:
    """Queries whose rows become files of ``targets``; ``file_io`` is the access to object storage."""

    queries: DayQueries
    targets: Sequence[FileTarget]
    file_io: Mapping[str, str]

    def done(self, rows: Rows, memory: str, threads: int | None = None) -> list[WrittenFile]:
        """Execute the queries in this process and return the files; ``rows`` returns those of a table."""
        files = TaskFiles(self.targets, self.file_io)
        written: list[WrittenFile] = []
        tables = self.queries.tables
        with duckdb_over(self.queries, rows, memory, threads) as engine:
            for name in (one for group in levels(tables) for one in group):
                contract = self.queries.contracts[name]
                engine.keep(name, cast(tables[name], contract))
                written += write(engine, ordered(name, contract), files, name)
        return written

    def sent(self, rows: Rows, spark: SparkSession) -> list[WrittenFile]:
        """Execute them in a task."""
        queries = self.queries
        read = queries.read(queries.tables) - set(queries.tables) - set(queries.landed.names)
        known = {name: sendable(rows(name)) for name in read}
        work = replace(self, queries=queries.sendable)

        def task() -> Iterator[pa.RecordBatch]:
            texts = [file.to_text() for file in work.done(known.__getitem__, TASK_MEMORY, 1)]
            yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["file"])

        told = in_a_task(spark, task, "file string").collect()
        return [WrittenFile.from_text(row["file"]) for row in told]


@contextmanager
def duckdb_over(
    queries: DayQueries, rows: Rows, memory: str | None = None, threads: int | None = None
) -> Iterator[DuckDBEngine]:
    """Give the block an engine that knows all that the queries read; ``rows`` returns those of a table."""

    def table(name: str) -> pa.Table | ds.Dataset:
        return queries.landed.dataset(name) if name in queries.landed.names else rows(name)

    engine = DuckDBEngine(table, memory=memory or driver_memory(), threads=threads)
    try:
        for function in queries.functions:
            engine.define(function)
        for name in sorted(queries.read(queries.tables) - set(queries.tables)):
            engine.open(name)
        yield engine
    finally:
        engine.release()


def write(engine: DuckDBEngine, query: str, files: TaskFiles, table: str) -> list[WrittenFile]:
    """Write the rows of a query, which come day by day, as files of a table."""
    written: list[WrittenFile] = []
    for batch in engine.batches(query):
        files.add(table, pa.Table.from_batches([batch]))
        written += files.complete_before(pc.max(batch["date"]).as_py())
    return [*written, *files.complete()]


def cast(query: str, contract: Table) -> str:
    """Return a query with the columns and types of a contract, in DuckDB's names."""
    columns = (f"CAST({c.name} AS {DUCKDB_TYPES.get(c.type, c.type)}) AS {c.name}" for c in contract.columns)
    return f"SELECT {', '.join(columns)} FROM ({query}) AS made"


def ordered(name: str, contract: Table, of_days: str = "") -> str:
    """Return the query of a table's rows, day by day, as its contract sorts them.

    ``of_days``: name of a table whose dates alone count.
    """
    kept = f" SEMI JOIN {of_days} AS kept ON {name}.date = kept.date" if of_days else ""
    return f"SELECT * FROM {name}{kept} ORDER BY {', '.join(('date', *contract.sort))}"


def _by_spark(attempt: Attempt, queries: DayQueries, spark: Callable[[], SparkSession]) -> None:
    known: set[str] = set()
    with spark_over(queries, spark, attempt.days) as engine:
        for group in levels(queries.tables):
            read = queries.read(group)
            for name in sorted(read - known):
                engine.open(name)
            known |= read
            frames = {name: engine.frame(queries.tables[name]) for name in group}
            jobs.stage(attempt, frames, queries.contracts)


@contextmanager
def spark_over(
    queries: DayQueries, spark: Callable[[], SparkSession], days: Callable[[SparkSession, str], DataFrame]
) -> Iterator[SparkEngine]:
    """Give the block an engine that can open what the queries read; ``days`` returns rows of a table."""

    def table(session: SparkSession, name: str) -> DataFrame:
        landed = queries.landed
        return landed.frame(session, name) if name in landed.names else days(session, name)

    engine = SparkEngine(spark, table)
    try:
        for function in queries.functions:
            engine.define(function)
        yield engine
    finally:
        engine.release()
