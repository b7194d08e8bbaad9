"""Step ``analytics`` of an IOTA network: decoded rows and staged tables → staged analytics tables."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from permalake.config import KnownLedger, NetworkSettings
from permalake.contracts.steps import StepResult
from permalake.iota.cone.decoded import DECODED
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.tables import known_ledger as known
from permalake.iota.tables.carried_tables import StateRules, state_tables
from permalake.iota.tables.day_tables import Group, analytics_tables
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.jobs import StepContext


def run(context: StepContext) -> StepResult:
    """Stage the analytics of the days and the tables that carry state from day to day."""
    with context.resume() as attempt:
        return staged(context, attempt)


def staged(context: StepContext, attempt: Attempt) -> StepResult:
    """Stage the tables of an attempt."""
    order, spark = context.order, context.spark
    network = context.work.settings.network(order.network)
    decoded = spark.read.schema(DECODED).parquet(attempt.landing)
    staged = partial(attempt.days, spark)

    stage(attempt, analytics_tables(decoded, staged, network.chunk_size))
    rules = StateRules(
        network.richest_addresses,
        network.v_byte_cost,
        rented=network.protocol == "stardust",
        ledger=partial(known_ledger, spark, network, network.ledger) if network.ledger else None,
    )
    published = partial(attempt.published, spark)
    stage(attempt, [state_tables(decoded, staged, published, rules, attempt.record.refused)])
    counted = jobs.counted(attempt, "ms_analytics", "metrics_cache", "daily_analytics")
    context.report(f"analytics {order}: {counted}")
    return StepResult()


def known_ledger(spark: SparkSession, network: NetworkSettings, ledger: KnownLedger) -> tuple[DataFrame, int]:
    """Return the configured ledger before the first day, and the milestone after which it holds."""
    return known.read(spark, ledger.path, network.protocol, network.bech32_hrp), ledger.milestone


def stage(attempt: Attempt, groups: Iterable[Group]) -> None:
    """Stage tables group by group."""
    for group in groups:
        jobs.stage(attempt, {name: frame() for name, frame in group.items()}, IOTA_TABLES)
