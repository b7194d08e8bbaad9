"""Step ``analytics`` of an IOTA network: staged tables and landed sums → staged analytics tables."""

from __future__ import annotations

from permalake.contracts.steps import StepResult
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.steps.table_writer import LANDED
from permalake.iota.tables.day_tables import analytics_tables
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.day_queries import DayQueries, stage_queries
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.landing import Written


def run(context: StepContext) -> StepResult:
    """Stage the analytics of the days."""
    with context.resume() as attempt:
        return staged(context, attempt)


def staged(context: StepContext, attempt: Attempt) -> StepResult:
    """Stage the tables of an attempt."""
    arguments = context.arguments
    network = context.work.settings.network(arguments.network)
    sums = Written.kept(attempt.landing, LANDED)
    queries = DayQueries(analytics_tables(network.v_byte_cost), IOTA_TABLES, sums.datasets)
    stage_queries(attempt, queries, lambda: context.spark)
    counted = jobs.counted(attempt, "ms_analytics", "metrics_cache", "daily_analytics")
    context.report(f"analytics {arguments}: {counted}")
    return StepResult()
