"""The staged state of an attempt as the audit reads it, behind protocols that the lake implements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.audit.configuration import Configuration
from permalake.audit.scope import Scope
from permalake.audit.task_answers import TaskAnswers
from permalake.config import window_days
from permalake.contracts.schema import Table
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.spark.sizes import fits_driver
from permalake.spark.submit import driver_memory, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from permalake.config import Settings


class StoredRows(Protocol):
    """Rows of some days of a table, that are read when asked for."""

    @property
    def count(self) -> int:
        """Number of rows, from metadata."""

    @property
    def size(self) -> int:
        """Size of the data files in bytes."""

    def read(self) -> pa.Table:
        """Return the rows, all in memory."""

    def scan(self) -> ds.Dataset:
        """Return the rows as a dataset, which reads what is asked of it."""


class Files(Protocol):
    """The rows of an attempt as files; those of a side table are the published ones."""

    def rows(self, name: str, start: date, end: date, without: Collection[date] = ()) -> StoredRows:
        """Return the rows of start..end as staged, but for some days; those of a side table as published."""

    def published_rows(self, name: str, start: date, end: date) -> StoredRows:
        """Return the rows of start..end as they were published when the attempt began."""

    def latest_before(self, name: str) -> date | None:
        """Return the latest day with rows before the attempt's days."""


class Staging(Protocol):
    """An attempt, as far as the audit reads it."""

    @property
    def network(self) -> str:
        """Lake namespace."""

    @property
    def start(self) -> date:
        """First day."""

    @property
    def end(self) -> date:
        """Last day, inclusive."""

    @property
    def refused(self) -> dict[date, str]:
        """Invalid days with their reasons."""

    @property
    def files(self) -> Files:
        """What is staged, as files."""


def scope_of(
    spark: Callable[[], SparkSession],
    settings: Settings,
    attempt: Staging,
    tables: Mapping[str, Table],
) -> Scope:
    """Return the rows of an attempt's days, without those it refused.

    On a local master this process reads large tables too, from files; on a cluster Spark's tasks do.
    ``spark`` gives the session; it is asked for when a task is to read a table. Side tables are read as
    published, with some days more at either end: a quote may be ``prices.window_hours`` older or younger than
    the transfer that it prices.
    """
    audited = _AuditedTables(attempt, tables, window_days(settings.prices.window_hours))
    small = fits_driver({name: (rows.count, rows.size) for name, rows in audited.rows.items()})
    network = settings.networks.get(attempt.network)

    def rows(name: str) -> pa.Table | ds.Dataset:
        return audited.rows[name].read() if name in small else audited.rows[name].scan()

    return Scope(
        frozenset(tables),
        DuckDBEngine(rows, audited.previous, driver_memory()),
        None if is_local() else TaskAnswers(spark, audited.scan, audited.scans_before),
        Configuration(
            protocol=network.protocol if network else None,
            chunk_size=network.chunk_size if network else None,
            reference=settings.wormhole.reference if settings.wormhole else None,
            window_hours=settings.prices.window_hours,
            max_missing=settings.prices.max_missing,
            max_factor=settings.prices.max_factor,
            min_confidence=settings.prices.min_confidence,
        ),
        small.__contains__,
        {name: rows.count for name, rows in audited.rows.items()},
    )


class _AuditedTables:
    """The rows of an attempt's days by table, of side tables with ``beside`` days more at either end."""

    def __init__(self, attempt: Staging, tables: Mapping[str, Table], beside: int) -> None:
        self._attempt = attempt
        self._beside = beside
        self._tables = tables
        self._refused = sorted(attempt.refused)
        self.rows = {name: attempt.files.rows(name, *self._span(name), self._refused) for name in tables}

    def scan(self, name: str) -> ds.Dataset:
        """Return the audited rows of a table, read when they are used."""
        return self.rows[name].scan()

    def previous(self, name: str) -> pa.Table:
        """Return the rows of the latest day before the audited ones."""
        before = [part.read() for part in self._before(name)]
        return pa.concat_tables([self.scan(name).schema.empty_table(), *before], promote_options="default")

    def scans_before(self, name: str) -> list[ds.Dataset]:
        """Return the same, in parts that are read when they are used."""
        return [part.scan() for part in self._before(name)]

    def _before(self, name: str) -> list[StoredRows]:
        """Refused days stay as they were published, and later days continue from that."""
        files = self._attempt.files
        latest = files.latest_before(name)
        if latest is None:
            return []
        return [
            files.rows(name, latest, latest),
            *(files.published_rows(name, day, day) for day in self._refused),
        ]

    def _span(self, name: str) -> tuple[date, date]:
        more = timedelta(self._beside if self._tables[name].commit == "side" else 0)
        return self._attempt.start - more, self._attempt.end + more
