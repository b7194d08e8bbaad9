"""The staged state of an attempt as the audit reads it, behind protocols that the lake implements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.audit.configuration import Configuration
from permalake.audit.duckdb_engine import DuckDBEngine
from permalake.audit.scope import Scope
from permalake.audit.spark_engine import SparkEngine
from permalake.contracts.schema import Table
from permalake.spark.sizes import fits_driver
from permalake.spark.submit import driver_memory, is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a whole table as staged, with its history."""

    def published(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a whole table as it was published when the attempt began."""

    @property
    def files(self) -> Files:
        """What is staged, as files."""


class PublishedTables(Protocol):
    """The published lake, as far as the audit reads it."""

    def table(self, spark: SparkSession, network: str, name: str) -> DataFrame:
        """Return a published table."""


def scope_of(
    spark: Callable[[], SparkSession],
    settings: Settings,
    lake: PublishedTables,
    attempt: Staging,
    tables: Mapping[str, Table],
) -> Scope:
    """Return the rows of an attempt's days, without those it refused.

    On a local master DuckDB reads large tables too, from files; on a cluster Spark does. ``spark`` gives
    the session; it is asked for when Spark is to read a table. Side tables are read as published, with a day
    more at either end: a quote may be some hours older or younger than the transfer that it prices.
    """
    audited = _AuditedTables(lake, attempt, tables)
    small = fits_driver({name: (rows.count, rows.size) for name, rows in audited.rows.items()})
    network = settings.networks.get(attempt.network)

    def rows(name: str) -> pa.Table | ds.Dataset:
        return audited.rows[name].read() if name in small else audited.rows[name].scan()

    return Scope(
        frozenset(tables),
        DuckDBEngine(rows, audited.previous, driver_memory()),
        None if is_local() else SparkEngine(spark, audited.frame, audited.previous_frame),
        Configuration(
            protocol=network.protocol if network else None,
            chunk_size=network.chunk_size if network else None,
            reference=settings.wormhole.reference if settings.wormhole else None,
            window_hours=settings.prices.window_hours,
            max_missing=settings.prices.max_missing,
        ),
        small.__contains__,
        {name: rows.count for name, rows in audited.rows.items()},
    )


class _AuditedTables:
    """The rows of an attempt's days by table, as files and as frames."""

    def __init__(self, lake: PublishedTables, attempt: Staging, tables: Mapping[str, Table]) -> None:
        self._lake = lake
        self._attempt = attempt
        self._tables = tables
        self._refused = sorted(attempt.refused)
        self.rows = {name: attempt.files.rows(name, *self._span(name), self._refused) for name in tables}

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """Return the audited rows of a table."""
        from pyspark.sql import functions as f

        if self._tables[name].commit == "side":
            whole = self._lake.table(spark, self._attempt.network, name)
        else:
            whole = self._attempt.table(spark, name)
        frame = whole.where(f.col("date").between(*map(f.lit, self._span(name))))
        return frame.where(~f.col("date").isin(self._refused)) if self._refused else frame

    def previous(self, name: str) -> pa.Table:
        """Return the rows of the latest day before the audited ones.

        Refused days stay as they were published, and later days continue from that.
        """
        latest = self._attempt.files.latest_before(name)
        if latest is None:
            return self.rows[name].read().slice(0, 0)
        known = self._attempt.files.rows(name, latest, latest).read()
        kept = [self._attempt.files.published_rows(name, day, day).read() for day in self._refused]
        return pa.concat_tables([known, *kept], promote_options="default")

    def previous_frame(self, spark: SparkSession, name: str) -> DataFrame:
        """Return the same as a frame."""
        from pyspark.sql import functions as f

        whole = self._attempt.table(spark, name)
        latest = self._attempt.files.latest_before(name)
        if latest is None:
            return whole.limit(0)
        known = whole.where(f.col("date") == f.lit(latest))
        if not self._refused:
            return known
        kept = self._attempt.published(spark, name).where(f.col("date").isin(self._refused))
        return known.unionByName(kept)

    def _span(self, name: str) -> tuple[date, date]:
        more = timedelta(1 if self._tables[name].commit == "side" else 0)
        return self._attempt.start - more, self._attempt.end + more
