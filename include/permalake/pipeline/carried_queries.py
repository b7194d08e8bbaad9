"""Carried tables staged of what queries over published rows make: days whose rows differ become files.

DuckDB reads the published files: in this process where the driver is the executor, in one of Spark's tasks on
a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.local_files import sendable
from permalake.lake import CarryAttempt
from permalake.lake.task_files import FileTarget, TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline.day_queries import cast, ordered, write
from permalake.spark.frames import in_a_task
from permalake.spark.sizes import TASK_MEMORY
from permalake.spark.submit import driver_memory, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[[DuckDBEngine], Mapping[str, "pa.Table | str"]]
"""Returns the rows of each table, or the query that makes them, by name of the table."""
_PRESENT, _CHANGED = "{}_present", "{}_changed"
_STAGED = "name string, file string"


class PublishedFiles:
    """The published rows of an attempt's network.

    Attributes:
        opened: What was opened, by name.
    """

    def __init__(self, attempt: CarryAttempt) -> None:
        self.opened: dict[str, ds.Dataset] = {}
        self._files = attempt.files

    def read(self, table: str, start: date, end: date) -> list[dict[str, Any]]:
        """Return the rows of start..end of a table with a few rows a day."""
        rows: list[dict[str, Any]] = self._files.published_rows(table, start, end).read().to_pylist()
        return rows

    def latest_before(self, table: str) -> date | None:
        """Return the latest day with rows before those of the attempt."""
        return self._files.latest_before(table)

    def open(self, name: str, table: str, start: date, end: date) -> None:
        """Make the rows of start..end of a table known to queries by name."""
        self.opened[name] = self._files.published_rows(table, start, end).scan()


def stage_carried(
    attempt: CarryAttempt,
    opened: Mapping[str, ds.Dataset],
    make: Make,
    contracts: Mapping[str, Table],
    spark: Callable[[], SparkSession],
) -> None:
    """Stage the tables of ``contracts``; days whose rows are as published keep their files.

    ``make`` works with what was ``opened``; on a cluster it is sent to a task of the session that ``spark``
    returns.
    """
    known = {
        _PRESENT.format(name): attempt.files.rows(name, attempt.start, attempt.end).scan()
        for name in contracts
    }
    targets = tuple(attempt.targets(contracts.values()))
    work = _Carrying({**opened, **known}, make, contracts, targets, object_storage.file_io())
    staged = work.done(driver_memory()) if is_local() else work.sent(spark())
    attempt.stage_files(staged.files, staged.changed)


@dataclass(frozen=True)
class _Staged:
    """Files of the changed days of each table."""

    files: list[WrittenFile]
    changed: Mapping[str, set[date]]


@dataclass(frozen=True)
class _Carrying:
    """Queries over ``opened`` rows, whose results become files of ``targets``."""

    opened: Mapping[str, pa.Table | ds.Dataset]
    make: Make
    contracts: Mapping[str, Table]
    targets: tuple[FileTarget, ...]
    file_io: Mapping[str, str]

    def done(self, memory: str, threads: int | None = None) -> _Staged:
        """Execute the queries in this process."""
        engine = DuckDBEngine(self._rows, memory=memory, threads=threads)
        try:
            for name in self.opened:
                engine.open(name)
            return self._staged(engine)
        finally:
            engine.release()

    def sent(self, spark: SparkSession) -> _Staged:
        """Execute them in a task."""
        known = {name: sendable(rows) for name, rows in self.opened.items()}
        work = _Carrying(known, self.make, self.contracts, self.targets, self.file_io)

        def task() -> Iterator[pa.RecordBatch]:
            staged = work.done(TASK_MEMORY, 1)
            days = {name: [day.isoformat() for day in sorted(one)] for name, one in staged.changed.items()}
            told = [("", file.to_text()) for file in staged.files]
            rows = [*told, *((name, json.dumps(one)) for name, one in days.items())]
            columns = zip(*rows, strict=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array(one, pa.string()) for one in columns], ["name", "file"]
            )

        files, changed = [], {}
        for row in in_a_task(spark, task, _STAGED).collect():
            if row["name"]:
                changed[row["name"]] = set(map(date.fromisoformat, json.loads(row["file"])))
            else:
                files.append(WrittenFile.from_text(row["file"]))
        return _Staged(files, changed)

    def _rows(self, name: str) -> ds.Dataset:
        rows = self.opened[name]
        return ds.dataset(rows) if isinstance(rows, pa.Table) else rows

    def _staged(self, engine: DuckDBEngine) -> _Staged:
        files = TaskFiles(self.targets, self.file_io)
        written: list[WrittenFile] = []
        changed: dict[str, set[date]] = {}
        for name, rows in self.make(engine).items():
            contract = self.contracts[name]
            if isinstance(rows, str):
                engine.keep(name, cast(rows, contract))
            else:
                engine.put(name, rows)
            changed[name] = _changed_days(engine, contract)
            days = pa.table({"date": pa.array(changed[name], pa.date32())})
            engine.put(_CHANGED.format(name), days)
            written += write(engine, ordered(name, contract, _CHANGED.format(name)), files, name)
        return _Staged(written, changed)


def _changed_days(engine: DuckDBEngine, contract: Table) -> set[date]:
    """Return the days whose rows are not those that are present."""
    columns = ", ".join(contract.names)
    # Sums of hashes take no memory, whatever the number of rows; DuckDB's own hash will do, as neither is
    # kept.
    new, old = (
        f"SELECT date, count(*) AS rows, sum(hash({columns})) AS digest FROM {rows} GROUP BY date"
        for rows in (contract.name, _PRESENT.format(contract.name))
    )
    differing = engine.rows(
        f"SELECT coalesce(new.date, old.date) AS date FROM ({new}) AS new FULL JOIN ({old}) AS old "
        "ON new.date = old.date WHERE new.rows IS DISTINCT FROM old.rows OR new.digest <> old.digest"
    )
    return {row["date"] for row in differing}
