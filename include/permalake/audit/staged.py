"""The staged state of an attempt as the audit reads it.

The lake is joined here by its shape only, so that the audit stays independent of how it stores things.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.audit.laws import Scope
from permalake.contracts import tables_of

if TYPE_CHECKING:
    from permalake.config import Settings


class Staging(Protocol):
    """What is asked of an attempt."""

    @property
    def network(self) -> str: ...
    @property
    def start(self) -> date: ...
    @property
    def end(self) -> date: ...
    @property
    def refused(self) -> dict[date, str]: ...
    def days(self, spark: SparkSession, name: str) -> DataFrame: ...
    def table(self, spark: SparkSession, name: str) -> DataFrame: ...
    def counts(self) -> dict[str, dict[date, int]]: ...


class Published(Protocol):
    """What is asked of the lake."""

    def table(self, spark: SparkSession, network: str, name: str) -> DataFrame: ...


def scope_of(spark: SparkSession, settings: Settings, lake: Published, attempt: Staging) -> Scope:
    """The rows of an attempt's days, but for those it refused.

    Side tables are read as published, with a day more at either end: a quote may be some hours older or
    younger than the transfer that it prices.
    """
    refused = sorted(attempt.refused)
    contracts = tables_of(attempt.network)

    def table(name: str) -> DataFrame:
        if contracts[name].commit == "side":
            span = attempt.start - timedelta(1), attempt.end + timedelta(1)
            frame = lake.table(spark, attempt.network, name).where(F.col("date").between(*map(F.lit, span)))
        else:
            frame = attempt.days(spark, name)
        return frame.where(~F.col("date").isin(refused)) if refused else frame

    def before(name: str) -> DataFrame | None:
        earlier = attempt.table(spark, name).where(F.col("date") < F.lit(attempt.start))
        latest = earlier.agg(F.max("date")).first()[0]  # type: ignore[index]
        return earlier.where(F.col("date") == F.lit(latest)) if latest else None

    counts = attempt.counts()
    rows = {name: sum(per_day.values()) for name, per_day in counts.items()}
    network = settings.networks.get(attempt.network)
    return Scope(
        table,
        chunk_size=network.chunk_size if network else None,
        reference=settings.wormhole.reference if settings.wormhole else None,
        window_hours=settings.prices.window_hours,
        max_missing=settings.prices.max_missing,
        rows=rows,
        history=before,
    )
