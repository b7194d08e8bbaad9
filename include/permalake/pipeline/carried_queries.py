"""Carried tables staged of what queries over published rows make: days whose rows differ become files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.contracts.sql_functions import SqlFunction
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.local_files import sendable
from permalake.engine.rows import Relation
from permalake.lake import CarryAttempt
from permalake.lake.task_files import TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline.day_queries import QueriesOverFiles, cast, ordered, write
from permalake.spark.tasks import TaskShare, in_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[[DuckDBEngine], Mapping[str, "pa.Table | str"]]
"""Returns the rows of each table, or the query that makes them, by name of the table."""
_PRESENT, _CHANGED = "{}_present", "{}_changed"


class PublishedFiles:
    """The published rows of an attempt's network.

    Attributes:
        opened: What was opened, by name.
    """

    def __init__(self, attempt: CarryAttempt) -> None:
        self.opened: dict[str, ds.Dataset] = {}
        self._staged = attempt.staged

    def read(self, table: str, start: date, end: date) -> list[dict[str, Any]]:
        """Return the rows of start..end of a table with a few rows a day."""
        rows: list[dict[str, Any]] = self._staged.published_rows(table, start, end).read().to_pylist()
        return rows

    def latest_before(self, table: str) -> date | None:
        """Return the latest day with rows before those of the attempt."""
        return self._staged.latest_before(table)

    def open(self, name: str, table: str, start: date, end: date) -> None:
        """Make the rows of start..end of a table known to queries by name."""
        self.opened[name] = self._staged.published_rows(table, start, end).scan()


def stage_carried(
    attempt: CarryAttempt,
    opened: Mapping[str, Relation],
    make: Make,
    contracts: Mapping[str, Table],
    spark: Callable[[], SparkSession],
    *,
    functions: Sequence[SqlFunction] = (),
) -> None:
    """Stage the tables of ``contracts``; days whose rows are as published keep their files.

    ``make`` works with what was ``opened``, in a task of the session that ``spark`` returns; its queries may
    call ``functions``.
    """
    present = {
        _PRESENT.format(name): attempt.staged.rows(name, attempt.start, attempt.end).scan()
        for name in contracts
    }
    targets, file_io = tuple(attempt.targets(contracts.values())), object_storage.file_io()
    files = {name: sendable(rows) for name, rows in {**opened, **present}.items()}
    sent = QueriesOverFiles({}, files, functions)

    def work(share: TaskShare) -> tuple[list[WrittenFile], dict[str, set[date]]]:
        output = TaskFiles(targets, file_io)
        written: list[WrittenFile] = []
        changed: dict[str, set[date]] = {}
        with sent.engine(share) as engine:
            for name, rows in make(engine).items():
                contract = contracts[name]
                if isinstance(rows, str):
                    engine.keep(name, cast(rows, contract))
                else:
                    engine.put(name, rows)
                changed[name] = _changed_days(engine, contract)
                days = pa.table({"date": pa.array(changed[name], pa.date32())})
                engine.put(_CHANGED.format(name), days)
                written += write(engine, ordered(name, contract, _CHANGED.format(name)), output, name)
        return written, changed

    attempt.stage_files(*in_task(spark(), work))


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
