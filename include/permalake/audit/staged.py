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
from permalake.config.services import window_days
from permalake.contracts.schema import Table
from permalake.contracts.steps import publishers_of
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.spark.sizes import TASK_MEMORY, fit_memory

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


class StagedRows(Protocol):
    """The rows of an attempt; those of a side table are the published ones."""

    def rows(self, name: str, start: date, end: date) -> StoredRows:
        """Return the rows of start..end as staged; those of a side table as published."""

    def rows_of(
        self, spans: Mapping[str, tuple[date, date]], without: Collection[date] = ()
    ) -> Mapping[str, StoredRows]:
        """Return the same of many tables, each from its first day to its last but for some days."""

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
    def staged(self) -> StagedRows:
        """The rows that are staged."""


def scope_of(
    spark: Callable[[], SparkSession],
    settings: Settings,
    attempt: Staging,
    tables: Mapping[str, Table],
) -> Scope:
    """Return the rows of an attempt's days, without those it refused.

    ``spark`` gives the session, whose tasks read the rows. Side tables are read as
    published, with some days more at either end: a quote may be ``prices.window_hours`` older or younger than
    the transfer that it prices.
    """
    audited = _AuditedTables(attempt, tables, window_days(settings.prices.window_hours))
    small = fit_memory({name: (rows.count, rows.size) for name, rows in audited.rows.items()})
    network = settings.networks.get(attempt.network)
    section = network or settings.wormhole

    return Scope(
        frozenset(tables),
        DuckDBEngine(audited.scan, memory=TASK_MEMORY, reach=audited.reach),
        TaskAnswers(spark, audited.scan, audited.scans_before, reach=audited.reach),
        Configuration(
            protocol=network.protocol if network else None,
            chunk_size=network.chunk_size if network else None,
            reference=settings.wormhole.reference if settings.wormhole else None,
            window_hours=settings.prices.window_hours,
            max_missing=settings.prices.max_missing,
            max_factor=settings.prices.max_factor,
            min_confidence=settings.prices.min_confidence,
            is_copy=section is not None and publishers_of(section) is not None,
        ),
        small.__contains__,
        {name: rows.count for name, rows in audited.rows.items()},
    )


class _AuditedTables:
    """The rows of an attempt's days by table, of side tables with ``beside`` days more at either end."""

    def __init__(self, attempt: Staging, tables: Mapping[str, Table], beside: int) -> None:
        self._attempt = attempt
        self.reach = {name: beside for name, table in tables.items() if table.commit == "side"}
        self._refused = sorted(attempt.refused)
        self.rows = attempt.staged.rows_of({name: self._span(name) for name in tables}, self._refused)

    def scan(self, name: str) -> ds.Dataset:
        """Return the audited rows of a table, read when they are used."""
        return self.rows[name].scan()

    def scans_before(self, name: str) -> list[ds.Dataset]:
        """Return the rows of the latest day before the audited ones, in parts read when they are used."""
        return [part.scan() for part in self._before(name)]

    def _before(self, name: str) -> list[StoredRows]:
        """Refused days stay as they were published, and later days continue from that."""
        staged = self._attempt.staged
        latest = staged.latest_before(name)
        if latest is None:
            return []
        return [
            staged.rows(name, latest, latest),
            *(staged.published_rows(name, day, day) for day in self._refused),
        ]

    def _span(self, name: str) -> tuple[date, date]:
        more = timedelta(self.reach.get(name, 0))
        return self._attempt.start - more, self._attempt.end + more
