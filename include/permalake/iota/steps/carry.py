"""Step ``carry`` of an IOTA network: published days → the ledger and its owners at the days' ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial

from permalake.config.networks import NetworkSettings
from permalake.iota.contracts import carried
from permalake.iota.tables.carried_tables import StateRules, carried_tables, published_state, spans
from permalake.iota.tables.known_ledger import LedgerFile
from permalake.lake import CarryAttempt
from permalake.pipeline.carried_queries import PublishedFiles, stage_carried
from permalake.pipeline.jobs import StepContext


def stage(context: StepContext, attempt: CarryAttempt) -> Mapping[date, str]:
    """Stage the carried tables of the attempt; no day becomes stale."""
    rules = _rules(context.work.settings.network(attempt.network))
    published = PublishedFiles(attempt)
    given = published_state(published, spans(published.read("date_cache", attempt.start, attempt.end)))
    make = partial(carried_tables, given=given, rules=rules)
    contracts = {table.name: table for table in carried.TABLES}
    stage_carried(attempt, published.opened, make, contracts, lambda: context.spark)
    return {}


def _rules(network: NetworkSettings) -> StateRules:
    ledger_file = network.ledger
    return StateRules(
        network.richest_addresses,
        network.v_byte_cost,
        rented=network.protocol == "stardust",
        ledger=LedgerFile(ledger_file.path, network.protocol, network.bech32_hrp, ledger_file.milestone)
        if ledger_file
        else None,
    )
