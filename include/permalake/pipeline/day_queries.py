"""Tables of days that are queries over other tables: executed and staged by DuckDB or by Spark.

Where the driver is the executor, DuckDB reads the staged files, and results become files here; on a cluster
Spark executes the same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.audit.duckdb_engine import DuckDBEngine
from permalake.audit.spark_engine import SparkEngine
from permalake.contracts import Table
from permalake.contracts.schema import DUCKDB_TYPES
from permalake.contracts.sql_functions import SqlFunction
from permalake.lake import Attempt
from permalake.lake.task_files import TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline import jobs
from permalake.spark.submit import driver_memory, is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class LandedRows(Protocol):
    """Rows that an earlier step left for queries beside the staged tables."""

    @property
    def names(self) -> Iterable[str]:
        """Names by which queries read them."""

    def dataset(self, name: str) -> ds.Dataset:
        """Return them for this process."""

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """Return them as a frame."""


class KnownFrames:
    """Frames that queries read beside the staged tables; where DuckDB executes them, they become Arrow."""

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self._frames = frames
        self.names = frozenset(frames)

    def dataset(self, name: str) -> ds.Dataset:
        """Return the rows of a frame for this process."""
        return ds.dataset(self._frames[name].toArrow())

    def frame(self, _: SparkSession, name: str) -> DataFrame:
        """Return a frame."""
        return self._frames[name]


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


def stage_queries(attempt: Attempt, queries: DayQueries, spark: Callable[[], SparkSession]) -> None:
    """Stage each table as the rows of its query.

    Raises:
        graphlib.CycleError: if queries read each other.
    """
    if is_local():
        _by_duckdb(attempt, queries)
    else:
        _by_spark(attempt, queries, spark)


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


def _by_duckdb(attempt: Attempt, queries: DayQueries) -> None:
    def rows(name: str) -> ds.Dataset:
        return attempt.files.rows(name, attempt.start, attempt.end).scan()

    made = [queries.contracts[name] for name in queries.tables]
    files = TaskFiles(attempt.targets(made), object_storage.file_io())
    written: list[WrittenFile] = []
    with duckdb_over(queries, rows) as engine:
        for name in (one for group in levels(queries.tables) for one in group):
            contract = queries.contracts[name]
            engine.keep(name, cast(queries.tables[name], contract))
            written += write(engine, ordered(name, contract), files, name)
    attempt.stage_files(written, made)


@contextmanager
def duckdb_over(queries: DayQueries, rows: Callable[[str], pa.Table | ds.Dataset]) -> Iterator[DuckDBEngine]:
    """Give the block an engine that knows all that the queries read; ``rows`` returns those of a table."""

    def table(name: str) -> pa.Table | ds.Dataset:
        return queries.landed.dataset(name) if name in queries.landed.names else rows(name)

    engine = DuckDBEngine(table, memory=driver_memory())
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
