"""Queries over the published rows of a network, and carried tables staged of what they make.

Where the driver is the executor, DuckDB reads published files, and days whose rows differ become files here;
on a cluster Spark executes the same text and merges the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from permalake.audit.duckdb_engine import DuckDBEngine
from permalake.audit.laws import Check
from permalake.audit.spark_engine import SparkEngine
from permalake.contracts import Table
from permalake.lake import CarryAttempt
from permalake.lake.day_rows import DayRows
from permalake.lake.task_files import TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline import jobs
from permalake.pipeline.day_queries import cast, ordered, write
from permalake.spark.submit import driver_memory, is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Made = Mapping[str, "pa.Table | str"]
"""Rows of a table, or the query that makes them, by name of the table."""


class Outside(Protocol):
    """Rows from outside the lake."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Read them in this process."""

    def frame(self, spark: SparkSession) -> DataFrame:
        """Read them in Spark's tasks."""


@contextmanager
def carried_queries(
    attempt: CarryAttempt, spark: Callable[[], SparkSession]
) -> Iterator[DuckDBQueries | SparkQueries]:
    """Give the queries of an attempt to the block; ``spark`` returns the session, where it is needed."""
    queries = DuckDBQueries(attempt) if is_local() else SparkQueries(attempt, spark)
    try:
        yield queries
    finally:
        queries.engine.release()


class _Published:
    """The published rows of an attempt, and what the engine knows of them by name."""

    def __init__(self, attempt: CarryAttempt, engine: DuckDBEngine | SparkEngine) -> None:
        self.engine = engine
        self._attempt = attempt

    def read(self, table: str, start: date, end: date) -> list[dict[str, Any]]:
        """Return the rows of start..end of a table with a few rows a day."""
        rows: list[dict[str, Any]] = self._attempt.files.published_rows(table, start, end).read().to_pylist()
        return rows

    def latest_before(self, table: str) -> date | None:
        """Return the latest day with rows before those of the attempt."""
        return self._attempt.files.latest_before(table)

    def put(self, name: str, rows: pa.Table) -> None:
        """Make a few rows known by name."""
        self.engine.put(name, rows)

    def keep(self, name: str, query: str) -> None:
        """Make the rows of a query known by name."""
        self.engine.keep(name, query)

    def keep_mapped(self, name: str, query: str, function: Check, schema: pa.Schema) -> None:
        """Make the few rows known by name that a function makes of those of a query."""
        self.engine.keep(name, query, function, schema)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the few rows of a query."""
        return self.engine.rows(query)


class DuckDBQueries(_Published):
    """Queries that DuckDB executes in this process."""

    engine: DuckDBEngine

    def __init__(self, attempt: CarryAttempt) -> None:
        self._opened: dict[str, DayRows] = {}
        super().__init__(
            attempt, DuckDBEngine(lambda name: self._opened[name].scan(), memory=driver_memory())
        )

    def open(self, name: str, table: str, start: date, end: date) -> None:
        """Make the rows of start..end of a table known by name."""
        self._opened[name] = self._attempt.files.published_rows(table, start, end)
        self.engine.open(name)

    def take(self, name: str, rows: Outside) -> None:
        """Make rows from outside the lake known by name."""
        self.engine.take(name, rows.batches(), rows.schema)

    def stage(self, made: Made, contracts: Mapping[str, Table]) -> None:
        """Stage carried tables; days whose rows are as published keep their files."""
        present = self._attempt.counts()
        files = TaskFiles(self._attempt.targets(contracts[name] for name in made), object_storage.file_io())
        written: list[WrittenFile] = []
        changed: dict[str, set[date]] = {}
        for name, rows in made.items():
            contract = contracts[name]
            if isinstance(rows, str):
                self.engine.keep(name, cast(rows, contract))
            else:
                self.engine.put(name, rows)
            changed[name] = self._changed(contract, present.get(name, {}))
            self.engine.put(f"{name}_changed", pa.table({"date": pa.array(changed[name], pa.date32())}))
            written += write(self.engine, ordered(name, contract, f"{name}_changed"), files, name)
        self._attempt.stage_files(written, changed)

    def _changed(self, contract: Table, present: Mapping[date, int]) -> set[date]:
        """Return the days whose rows are not those that are ``present`` (rows per day)."""
        name = contract.name
        counted = self.engine.rows(f"SELECT date, count(*) AS rows FROM {name} GROUP BY date")
        made = {row["date"]: row["rows"] for row in counted}
        other = {day for day in made.keys() | present.keys() if made.get(day) != present.get(day)}
        if not made.keys() - other:
            return other
        attempt = self._attempt
        self._opened[f"{name}_present"] = attempt.files.rows(name, attempt.start, attempt.end, other)
        self.engine.open(f"{name}_present")
        columns = ", ".join(contract.names)
        # Sums of hashes take no memory, whatever the number of rows; DuckDB's own hash will do, as neither is
        # kept.
        new, old = (
            f"SELECT date, sum(hash({columns})) AS digest FROM {rows} GROUP BY date"
            for rows in (name, f"{name}_present")
        )
        differing = self.engine.rows(
            f"SELECT new.date FROM ({new}) AS new JOIN ({old}) AS old ON new.date = old.date "
            "WHERE new.digest <> old.digest"
        )
        return other | {row["date"] for row in differing}


class SparkQueries(_Published):
    """Queries that Spark executes."""

    engine: SparkEngine

    def __init__(self, attempt: CarryAttempt, spark: Callable[[], SparkSession]) -> None:
        self._spark = spark
        self._opened: dict[str, DataFrame] = {}
        super().__init__(attempt, SparkEngine(spark, lambda _, name: self._opened[name]))

    def open(self, name: str, table: str, start: date, end: date) -> None:
        """Make the rows of start..end of a table known by name."""
        from pyspark.sql import functions as f

        rows = self._attempt.published(self._spark(), table)
        self._opened[name] = rows.where(f.col("date").between(f.lit(start), f.lit(end)))
        self.engine.open(name)

    def take(self, name: str, rows: Outside) -> None:
        """Make rows from outside the lake known by name."""
        self._opened[name] = rows.frame(self._spark())
        self.engine.open(name)

    def stage(self, made: Made, contracts: Mapping[str, Table]) -> None:
        """Stage carried tables; files without a changed row stay as they are."""
        frames = {
            name: self.engine.frame(rows) if isinstance(rows, str) else self._spark().createDataFrame(rows)
            for name, rows in made.items()
        }
        jobs.stage(self._attempt, frames, contracts)
