"""Tables of days that are queries over other tables: DuckDB executes them in a Spark task and writes files.

A task is given the files that the queries read, and gives back the files that it wrote, or a few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts import Table
from permalake.contracts.schema import duckdb_type
from permalake.contracts.sql_functions import SqlFunction
from permalake.contracts.sql_text import names_read
from permalake.engine.duckdb_engine import DuckDBEngine, Rows
from permalake.engine.local_files import sendable
from permalake.engine.rows import Relation
from permalake.lake import Attempt
from permalake.lake.task_files import TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.spark.tasks import TaskShare, in_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class DayQueries:
    """Queries of tables, each by the name of its table.

    A query may read staged tables, what is ``landed``, and tables of other queries, and call ``functions``.
    """

    tables: Mapping[str, str]
    contracts: Mapping[str, Table]
    landed: Mapping[str, Relation] = field(default_factory=dict)
    functions: Sequence[SqlFunction] = ()

    def read(self, tables: Iterable[str]) -> set[str]:
        """Return what the queries of some tables read."""
        text = " ".join(self.tables[name] for name in tables)
        return names_in(text, {*self.contracts, *self.landed})

    @property
    def has_landed_rows(self) -> bool:
        """Whether something landed that the queries read has rows."""
        read = self.read(self.tables) & self.landed.keys()
        return any(_has_rows(self.landed[name]) for name in read)

    def over(self, rows: Rows) -> QueriesOverFiles:
        """Return the queries with all that they read; ``rows`` returns the rows of a table."""
        read = self.read(self.tables) - set(self.tables)
        landed = self.landed
        return QueriesOverFiles(
            {name: self.tables[name] for level in levels(self.tables) for name in level},
            {name: sendable(landed[name] if name in landed else rows(name)) for name in read},
            self.functions,
        )


@dataclass(frozen=True)
class QueriesOverFiles:
    """Queries as they are sent to a task, with the ``files`` that they read.

    Each comes after those whose tables it reads. Rows that lie in no file are sent themselves.
    """

    tables: Mapping[str, str]
    files: Mapping[str, Relation]
    functions: Sequence[SqlFunction] = ()

    @contextmanager
    def engine(self, share: TaskShare) -> Iterator[DuckDBEngine]:
        """Give the block an engine that knows what the queries read."""
        engine = DuckDBEngine(self.files.__getitem__, memory=share.memory, threads=share.threads)
        try:
            for function in self.functions:
                engine.define(function)
            for name in sorted(self.files):
                engine.open(name)
            yield engine
        finally:
            engine.release()


def stage_queries(attempt: Attempt, queries: DayQueries, spark: Callable[[], SparkSession]) -> None:
    """Stage each table as the rows of its query.

    Raises:
        graphlib.CycleError: if queries read each other.
    """
    made = [queries.contracts[name] for name in queries.tables]
    targets = tuple(attempt.targets(made))
    file_io = object_storage.file_io()
    contracts = {contract.name: contract for contract in made}
    sent = queries.over(lambda name: attempt.staged.rows(name, attempt.start, attempt.end).scan())

    def work(share: TaskShare) -> list[WrittenFile]:
        files = TaskFiles(targets, file_io)
        written: list[WrittenFile] = []
        with sent.engine(share) as engine:
            for name, query in sent.tables.items():
                engine.keep(name, cast(query, contracts[name]))
                written += write(engine, ordered(name, contracts[name]), files, name)
        return written

    attempt.stage_files(in_task(spark(), work), made)


def few_rows(queries: DayQueries, spark: Callable[[], SparkSession]) -> dict[str, list[dict[str, Any]]]:
    """Return the few rows of each query over what was landed; none where that has no rows."""
    if not queries.has_landed_rows:
        return {name: [] for name in queries.tables}
    sent = queries.over(_no_table)

    def work(share: TaskShare) -> dict[str, list[dict[str, Any]]]:
        with sent.engine(share) as engine:
            return {name: engine.rows(query) for name, query in sent.tables.items()}

    return in_task(spark(), work)


def _has_rows(relation: Relation) -> bool:
    rows = relation if isinstance(relation, pa.Table) else relation.head(1)
    return bool(rows.num_rows)


def _no_table(name: str) -> pa.Table:
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
    return names_read(query) & set(names)


def write(engine: DuckDBEngine, query: str, files: TaskFiles, table: str) -> list[WrittenFile]:
    """Write the rows of a query, which come day by day, as files of a table."""
    written: list[WrittenFile] = []
    for batch in engine.batches(query):
        files.add(table, pa.Table.from_batches([batch]))
        written += files.complete_before(pc.max(batch["date"]).as_py())
    return [*written, *files.complete()]


def cast(query: str, contract: Table) -> str:
    """Return a query with the columns and types of a contract, in DuckDB's names."""
    columns = (f"CAST({c.name} AS {duckdb_type(c.type)}) AS {c.name}" for c in contract.columns)
    return f"SELECT {', '.join(columns)} FROM ({query}) AS made"


def ordered(name: str, contract: Table, of_days: str = "") -> str:
    """Return the query of a table's rows, day by day, as its contract sorts them.

    ``of_days``: name of a table whose dates alone count.
    """
    kept = f" SEMI JOIN {of_days} AS kept ON {name}.date = kept.date" if of_days else ""
    return f"SELECT * FROM {name}{kept} ORDER BY {', '.join(dict.fromkeys(('date', *contract.order)))}"
