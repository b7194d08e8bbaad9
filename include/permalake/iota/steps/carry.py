"""Step ``carry`` of an IOTA network: published days → the ledger and its owners at the days' ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from permalake.config import KnownLedger, NetworkSettings
from permalake.intervals import dates
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.tables import known_ledger as known
from permalake.iota.tables.carried_tables import StateRules, carried_tables, spans
from permalake.lake import CarryAttempt
from permalake.pipeline import jobs
from permalake.pipeline.jobs import StepContext


def stage(context: StepContext, attempt: CarryAttempt) -> Mapping[date, str]:
    """Stage the carried tables of the attempt; no day becomes stale."""
    spark, network = context.spark, context.work.settings.network(attempt.network)
    rules = StateRules(
        network.richest_addresses,
        network.v_byte_cost,
        rented=network.protocol == "stardust",
        ledger=partial(_known_ledger, spark, network, network.ledger) if network.ledger else None,
    )
    own, published = partial(attempt.days, spark), partial(attempt.published, spark)
    days = spans(own("date_cache"))
    stale = [day for first, last in context.work.reader.stale(attempt.network) for day in dates(first, last)]
    tables = carried_tables(own, published, days, rules, stale)
    jobs.stage(attempt, {name: make() for name, make in tables.items()}, IOTA_TABLES)
    return {}


def _known_ledger(
    spark: SparkSession, network: NetworkSettings, ledger: KnownLedger
) -> tuple[DataFrame, int]:
    """Return the configured ledger before the first day, and the milestone after which it holds."""
    return known.read(spark, ledger.path, network.protocol, network.bech32_hrp), ledger.milestone
