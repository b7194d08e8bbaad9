"""The carried tables of an IOTA network: which rows and which query become which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

import pyarrow as pa

from permalake.contracts.rows import Row
from permalake.iota.contracts import IOTA_TABLES, carried
from permalake.iota.tables import address_state as addresses
from permalake.iota.tables import known_ledger
from permalake.iota.tables import ledger_daily as ledger
from permalake.iota.tables.carried_sums import Chained, Ending, Rows, chained

_FEW_ROWS = ("ledger_outputs", "unlock_conditions", "token_distribution", "active_addresses")
Made = dict[str, pa.Table | str]
"""Rows of a table, or a query over what was made known; by name of the table."""
Span = tuple[date, int, int]
Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Published(Protocol):
    """The published rows of a network."""

    def read(self, table: str, start: date, end: date) -> list[Row]:
        """Return the rows of start..end of a table with a few rows a day."""

    def latest_before(self, table: str) -> date | None:
        """Return the latest day with rows before the days to carry."""

    def open(self, name: str, table: str, start: date, end: date) -> None:
        """Make the rows of start..end of a table known to queries by name."""


class Queries(Protocol):
    """Queries over what is known by name."""

    def put(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Make rows known: a few, or as many as a reader gives."""

    def keep(self, name: str, query: str, check: Batches | None = None, schema: pa.Schema = ...) -> None:
        """Make the rows of a query known, or the few with ``schema`` that ``check`` makes of them."""

    def rows(self, query: str) -> list[Row]:
        """Return the few rows of a query."""


@dataclass(frozen=True, slots=True)
class StateRules:
    """Settings of a network that carried tables need.

    Attributes:
        richest: How many addresses ``richest_addresses`` holds.
        v_byte_cost: Rent per weighted byte (TIP-19) in base tokens; None where it is not known.
        rented: Whether outputs need a storage deposit (Stardust).
        ledger: The outputs unspent before the network's first day, where they are known.
    """

    richest: int = 100
    v_byte_cost: int | None = None
    rented: bool = True
    ledger: known_ledger.LedgerFile | None = None


@dataclass(frozen=True, slots=True)
class PublishedState:
    """The inputs of carried tables, as far as they are a few rows a day.

    Attributes:
        days: (date, first milestone, last milestone) of the days to carry, in order.
        before: The end of the latest day before them in the lake.
        state: Rows of that day, by table.
        flows: Rows of ``ledger_changes`` of the days.
    """

    days: Sequence[Span]
    before: Ending | None
    state: Mapping[str, Rows]
    flows: Rows


def published_state(published: Published, days: Sequence[Span]) -> PublishedState:
    """Read what is published, and open what queries read.

    Args:
        published: What is published, of these days and before them.
        days: (date, first milestone, last milestone) in order.
    """
    if not days:
        return PublishedState((), None, {}, ())
    before = _ending(published)
    first, last = days[0][0], days[-1][0]
    flows = published.read("ledger_changes", first, last)
    published.open("balance_changes", "balance_changes", first, last)
    if before:
        published.open("balances_before", "address_balances", before.checkpoint, before.day)
    state = {name: published.read(name, before.day, before.day) if before else [] for name in _FEW_ROWS}
    return PublishedState(days, before, state, flows)


def carried_tables(queries: Queries, given: PublishedState, rules: StateRules) -> Made:
    """Return the carried tables of a range of days, of which queries know what was opened."""
    days, before = given.days, given.before
    if not days:
        return {table.name: table.arrow.empty_table() for table in carried.TABLES}
    # A known ledger is the end of a day before the first one, on which all of it was created.
    opening, opened = _opening(queries, rules) if before is None else (None, [])
    chain = chained(days, before or opening)
    every = [known_ledger.beginning(opening.end_ms), *chain] if opening else chain
    first = days[0][0]
    if before is None:
        queries.put("balances_before", IOTA_TABLES["address_balances"].arrow.empty_table())
    queries.put("days", addresses.days_table(every))
    for name, query in addresses.steps(from_ledger=opening.day if opening else None).items():
        queries.keep(name, query)
    figures = _figures([*opened, *given.flows], every, given, queries, rules)
    return {
        **{
            name: _table(name, [row for row in rows if row["date"] >= first])
            for name, rows in figures.items()
        },
        "address_balances": addresses.address_balances(chain),
        "richest_addresses": addresses.richest_addresses(chain, rules.richest, figures["token_distribution"]),
    }


def _opening(queries: Queries, rules: StateRules) -> tuple[Ending | None, list[Row]]:
    """Return the end of a day that creates the known ledger, if there is one, and its ``ledger_changes``."""
    if rules.ledger is None:
        return None, []
    outputs = pa.RecordBatchReader.from_batches(rules.ledger.schema, rules.ledger.batches())
    queries.put("known_outputs", outputs)
    queries.keep("known_balances", known_ledger.BALANCES)
    sums = known_ledger.LedgerSums(rules.v_byte_cost)
    queries.keep("known_sums", "SELECT * FROM known_outputs", sums, sums.schema)
    flows = queries.rows(known_ledger.CHANGES)
    begun = known_ledger.beginning(rules.ledger.milestone)
    deposit = ledger.storage_deposits(flows, [begun], 0)[begun.day]
    return Ending(begun.day, begun.end_ms, None, begun.day, storage_deposit=deposit), flows


def _figures(
    flows: Rows, days: list[Chained], given: PublishedState, queries: Queries, rules: StateRules
) -> dict[str, list[Row]]:
    """Return rows of the tables with a few rows a day; ``flows`` are rows of ``ledger_changes``."""
    before, state = given.before, given.state
    turns = queries.rows(addresses.turns())
    outputs = ledger.ledger_outputs(flows, days, state["ledger_outputs"])
    moves = queries.rows(addresses.moves())
    distribution = addresses.token_distribution(moves, days, state["token_distribution"])
    fingerprints = addresses.fingerprints(turns, days, before.fingerprint if before else 0)
    deposits = ledger.storage_deposits(flows, days, before.storage_deposit if before else 0)
    totals = [
        {
            **ledger.ledger_size(outputs, day.day, deposits[day.day], rules.rented),
            "milestone_index": day.end_ms,
            "holders": sum(row["addresses"] for row in distribution if row["date"] == day.day),
            "checkpoint": day.checkpoint,
            "fingerprint": fingerprints[day.day],
            **day.stamp,
        }
        for day in days
    ]
    return {
        "ledger_outputs": outputs,
        "unlock_conditions": ledger.unlock_conditions(flows, days, state["unlock_conditions"]),
        "token_distribution": distribution,
        "active_addresses": addresses.active_addresses(turns, days, state["active_addresses"]),
        "ledger_totals": totals,
    }


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, IOTA_TABLES[name].arrow)


def _ending(published: Published) -> Ending | None:
    """Return the end of the latest day before; its date is found in metadata, however many days there are."""
    latest = published.latest_before("ledger_totals")
    if latest is None:
        return None
    [row] = published.read("ledger_totals", latest, latest)
    return Ending(
        row["date"],
        row["milestone_index"],
        row["since_milestone"],
        row["checkpoint"],
        row["fingerprint"],
        row["storage_deposit"],
    )


def spans(date_cache: Rows) -> list[Span]:
    """Return days with milestones in order: (date, first milestone, last milestone)."""
    return sorted((row["date"], row["start_ms"], row["end_ms"]) for row in date_cache)
