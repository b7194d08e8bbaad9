"""The staged state of an attempt as the audit reads it, behind protocols that the lake implements."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.audit.scope import Scope
from permalake.contracts.schema import Table

if TYPE_CHECKING:
    from permalake.config import Settings


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

    def days(self, spark: SparkSession, name: str) -> DataFrame:
        """Return the staged rows of the attempt's days."""

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a whole table as staged, with its history."""

    def published(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a whole table as it was published when the attempt began."""

    def counts(self) -> dict[str, dict[date, int]]:
        """Return the number of rows per table and day."""


class PublishedTables(Protocol):
    """The published lake, as far as the audit reads it."""

    def table(self, spark: SparkSession, network: str, name: str) -> DataFrame:
        """Return a published table."""


def scope_of(
    spark: SparkSession,
    settings: Settings,
    lake: PublishedTables,
    attempt: Staging,
    tables: Mapping[str, Table],
) -> Scope:
    """Return the rows of an attempt's days, without those it refused.

    Side tables are read as published, with a day more at either end: a quote may be some hours older or
    younger than the transfer that it prices.
    """
    refused = sorted(attempt.refused)

    def table(name: str) -> DataFrame:
        if tables[name].commit == "side":
            span = attempt.start - timedelta(1), attempt.end + timedelta(1)
            frame = lake.table(spark, attempt.network, name).where(F.col("date").between(*map(F.lit, span)))
        else:
            frame = attempt.days(spark, name)
        return frame.where(~F.col("date").isin(refused)) if refused else frame

    def before(name: str) -> DataFrame | None:
        earlier = attempt.table(spark, name).where(F.col("date") < F.lit(attempt.start))
        latest = earlier.agg(F.max("date")).first()[0]  # type: ignore[index]
        known = earlier.where(F.col("date") == F.lit(latest)) if latest else None
        if not refused:
            return known
        # They stay as they were published, and later days continue from that.
        kept = attempt.published(spark, name).where(F.col("date").isin(refused))
        return known.unionByName(kept) if known else kept

    counts = attempt.counts()
    rows = {name: sum(per_day.values()) for name, per_day in counts.items()}
    network = settings.networks.get(attempt.network)
    return Scope(
        table,
        protocol=network.protocol if network else None,
        chunk_size=network.chunk_size if network else None,
        reference=settings.wormhole.reference if settings.wormhole else None,
        window_hours=settings.prices.window_hours,
        max_missing=settings.prices.max_missing,
        rows=rows,
        history=before,
    )
