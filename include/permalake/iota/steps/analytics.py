"""Step ``analytics`` of an IOTA network: decoded rows and staged tables → staged analytics tables."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from permalake.contracts.steps import StepResult
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.steps.table_writer import landed
from permalake.iota.tables.day_tables import Group, analytics_tables
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.jobs import StepContext


def run(context: StepContext) -> StepResult:
    """Stage the analytics of the days."""
    with context.resume() as attempt:
        return staged(context, attempt)


def staged(context: StepContext, attempt: Attempt) -> StepResult:
    """Stage the tables of an attempt."""
    order, spark = context.order, context.spark
    network = context.work.settings.network(order.network)
    decoded = landed(spark, attempt.landing)
    staged = partial(attempt.days, spark)

    stage(attempt, analytics_tables(decoded, staged, network.v_byte_cost))
    counted = jobs.counted(attempt, "ms_analytics", "metrics_cache", "daily_analytics")
    context.report(f"analytics {order}: {counted}")
    return StepResult()


def stage(attempt: Attempt, groups: Iterable[Group]) -> None:
    """Stage tables group by group."""
    for group in groups:
        jobs.stage(attempt, {name: frame() for name, frame in group.items()}, IOTA_TABLES)
