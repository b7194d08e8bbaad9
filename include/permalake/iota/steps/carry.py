"""Step ``carry`` of an IOTA network: published days → the ledger and its owners at the days' ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from permalake.config import NetworkSettings
from permalake.intervals import dates
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.tables.carried_tables import StateRules, carried_tables, spans
from permalake.iota.tables.known_ledger import LedgerFile
from permalake.lake import CarryAttempt
from permalake.pipeline.carried_queries import carried_queries
from permalake.pipeline.jobs import StepContext


def stage(context: StepContext, attempt: CarryAttempt) -> Mapping[date, str]:
    """Stage the carried tables of the attempt; no day becomes stale."""
    rules = _rules(context.work.settings.network(attempt.network))
    stale = [day for first, last in context.work.reader.stale(attempt.network) for day in dates(first, last)]
    with carried_queries(attempt, lambda: context.spark) as published:
        days = spans(published.read("date_cache", attempt.start, attempt.end))
        published.stage(carried_tables(published, days, rules, stale), IOTA_TABLES)
    return {}


def _rules(network: NetworkSettings) -> StateRules:
    known = network.ledger
    return StateRules(
        network.richest_addresses,
        network.v_byte_cost,
        rented=network.protocol == "stardust",
        ledger=LedgerFile(known.path, network.protocol, network.bech32_hrp, known.milestone)
        if known
        else None,
    )
