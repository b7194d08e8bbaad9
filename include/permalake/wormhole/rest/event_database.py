"""Figures in the shapes of Wormhole's former event database; "now" is the end of the last published day.

Sums are keyed by chain ids as text and by symbol; ``*`` stands for all. As there, different tokens with the
same symbol share a key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Generic, TypeVar

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.wormhole.rest.edb_answers import (
    ByReceiver,
    BySource,
    BySymbol,
    ByTarget,
    Counts,
    MessageTotals,
)
from permalake.wormhole.rest.rows import Parameters, Rows
from permalake.wormhole.rest.scorecards import last_day

ALL = "*"
RELEASE = date(2021, 9, 13)
"""First day of "all time", as there."""
DEFAULT_DAYS = 30
_CENTS = 2


@dataclass(frozen=True)
class EdbRequest:
    """Parameters that the figures share; ``address`` belongs to ``chain``."""

    days: int | None = None
    chain: int | None = None
    address: str | None = None
    last_24_hours: bool = False
    period: bool = False
    daily: bool = False
    group_by: str | None = None

    @property
    def period_days(self) -> int:
        """Length of the period."""
        return DEFAULT_DAYS if self.days is None else self.days


Figures = TypeVar("Figures", BySource, ByTarget, BySymbol, Counts)


@dataclass(frozen=True)
class EdbWindows(Generic[Figures]):
    """Values of the last day, of the period, and of each of its days; empty where none were asked for."""

    last_day: Figures | None = None
    period: Figures | None = None
    daily: dict[str, Figures] = field(default_factory=dict)


def windows(
    rows: Rows,
    request: EdbRequest,
    select: Callable[[date, date], list[Row]],
    shape: Callable[[Iterable[Row]], Figures],
) -> EdbWindows[Figures]:
    """Return the windows that a request asks for, of rows with a ``date``; empty where it does not ask."""
    last = last_day(rows)
    if last is None:
        return EdbWindows()
    # As there, "numDays days ago" counts back from the last day, which is one day more.
    first = last - timedelta(min(request.period_days, (last - date.min).days))
    only_last = not (request.period or request.daily)
    selected = select(last if only_last else first, last)
    by_day: dict[date, list[Row]] = defaultdict(list)
    for row in selected:
        by_day[row["date"]].append(row)
    daily = {}
    if request.daily:
        days = [first + timedelta(number) for number in range((last - first).days + 1)]
        daily = {day.isoformat(): shape(by_day.get(day, [])) for day in days}
    return EdbWindows(
        shape(by_day.get(last, [])) if request.last_24_hours or only_last else None,
        shape(selected) if request.period else None,
        daily,
    )


def transfers(rows: Rows, request: EdbRequest) -> Callable[[date, date], list[Row]]:
    """Return the question for values by day, route and symbol, of one emitter where the request names it."""

    def select(first: date, last: date) -> list[Row]:
        bound = Parameters()
        conditions = [f"n.date BETWEEN {bound.add(first)} AND {bound.add(last)}"]
        if request.chain is not None:
            conditions.append(f"n.emitter_chain = {bound.add(request.chain)}")
        where = " AND ".join(conditions)
        scan = Scan(first, last)
        if request.address is None:
            return rows(
                "SELECT n.date, n.emitter_chain, n.target_chain, n.symbol, n.notional_usd "  # noqa: S608
                f"FROM notional_transferred_daily n WHERE {where}",
                bound,
                notional_transferred_daily=scan,
            )
        emitter = bound.add(request.address)
        return rows(
            "SELECT n.date, n.emitter_chain, t.target_chain, d.origin_symbol AS symbol, d.notional_usd "  # noqa: S608
            "FROM message_publication n JOIN token_transfer_payload t ON t.row_key = n.row_key "
            "JOIN token_transfer_details d ON d.row_key = n.row_key "
            f"WHERE {where} AND n.emitter_address = {emitter}",
            bound,
            message_publication=scan,
            token_transfer_payload=scan,
            token_transfer_details=scan,
        )

    return select


def by_route(moved: Iterable[Row]) -> BySource:
    """Sum values by sending chain, receiving chain and symbol."""
    sums: BySource = {ALL: {ALL: {ALL: 0.0}}}
    for row in moved:
        source, target, symbol, value = _route(row)
        sums[ALL][ALL][ALL] += value
        by_target_chain = sums.setdefault(source, {ALL: {ALL: 0.0}})
        by_target_chain[ALL][ALL] += value
        pair = by_target_chain.setdefault(target, {ALL: 0.0})
        pair[ALL] += value
        pair[symbol] = pair.get(symbol, 0.0) + value
    return {source: _rounded_targets(targets) for source, targets in sums.items()}


def by_target(moved: Iterable[Row]) -> ByTarget:
    """Sum values by receiving chain and symbol."""
    sums: ByTarget = {ALL: {ALL: 0.0}}
    for row in moved:
        _, target, symbol, value = _route(row)
        sums[ALL][ALL] += value
        by_symbol = sums.setdefault(target, {ALL: 0.0})
        by_symbol[ALL] += value
        by_symbol[symbol] = by_symbol.get(symbol, 0.0) + value
    return _rounded_targets(sums)


def by_source(moved: Iterable[Row]) -> BySymbol:
    """Sum values by sending chain."""
    sums = {ALL: 0.0}
    for row in moved:
        source, _, _, value = _route(row)
        sums[ALL] += value
        sums[source] = sums.get(source, 0.0) + value
    return _rounded(sums)


def _route(row: Row) -> tuple[str, str, str, float]:
    chains = str(row["emitter_chain"]), str(row["target_chain"])
    return *chains, row["symbol"] or "", float(row["notional_usd"] or 0)


def _rounded(sums: Mapping[str, float]) -> BySymbol:
    return {key: round(value, _CENTS) for key, value in sums.items()}


def _rounded_targets(sums: Mapping[str, Mapping[str, float]]) -> ByTarget:
    return {key: _rounded(values) for key, values in sums.items()}


def receivers(rows: Rows, request: EdbRequest) -> Callable[[date, date], list[Row]]:
    """Return the question for the receivers of transfers by day, and what each got."""

    def select(first: date, last: date) -> list[Row]:
        bound = Parameters()
        conditions = [f"t.date BETWEEN {bound.add(first)} AND {bound.add(last)}"]
        # The row key holds chain and address whole: a prefix "1" must not take chains 10 to 19.
        if request.chain is not None:
            conditions.append(f"split_part(t.row_key, ':', 1) = {bound.add(str(request.chain))}")
        if request.address is not None:
            conditions.append(f"split_part(t.row_key, ':', 2) = {bound.add(request.address)}")
        return rows(
            "SELECT t.date, t.target_chain, coalesce(c.receiver_address, t.target_address) AS address, "  # noqa: S608
            "CAST(coalesce(sum(d.notional_usd), 0) AS DOUBLE) AS value FROM token_transfer_payload t "
            "LEFT JOIN token_transfer_details d ON d.row_key = t.row_key AND d.date = t.date "
            "LEFT JOIN chain_details c ON c.row_key = t.row_key AND c.date = t.date "
            f"WHERE {' AND '.join(conditions)} GROUP BY ALL",
            bound,
            **dict.fromkeys(
                ("token_transfer_payload", "token_transfer_details", "chain_details"), Scan(first, last)
            ),
        )

    return select


def amounts(moved: Iterable[Row]) -> ByReceiver:
    """Sum what each receiver got, by chain and address."""
    sums: ByReceiver = {}
    for row in moved:
        by_address = sums.setdefault(str(row["target_chain"]), {})
        by_address[row["address"]] = by_address.get(row["address"], 0.0) + row["value"]
    return _rounded_targets(sums)


def counts(messages: Iterable[Row]) -> Counts:
    """Count receivers by chain; those of all chains are added up."""
    by_chain = {chain: len(addresses) for chain, addresses in amounts(messages).items()}
    return {ALL: sum(by_chain.values()), **by_chain}


def message_totals(rows: Rows, request: EdbRequest, table: str = "message_publication") -> MessageTotals:
    """Return counts of messages (or of rows of another table) by day, grouped as the request asks.

    A period in days holds every day; all time holds only days with messages.
    """
    group = request.group_by
    if group is None and request.chain is not None:
        group = "chain"
    if request.address is not None:
        group = "address"
    parts = {"chain": 1, "address": 2}.get(group or "", 0)
    last = last_day(rows)
    if last is None:
        return {
            "LastDayCount": {ALL: 0},
            "TotalCount": {ALL: 0},
            "TotalCountDurationDays": 0,
            "DailyTotals": {},
        }
    first = RELEASE if request.days is None else last - timedelta(min(request.days, (last - date.min).days))
    daily: dict[str, Counts] = {last.isoformat(): {ALL: 0}}
    if request.days is not None:
        daily |= {
            (first + timedelta(number)).isoformat(): {ALL: 0} for number in range((last - first).days + 1)
        }
    total: Counts = {ALL: 0}
    for row in _counted(rows, request, table, first, last):
        keys = {ALL, ":".join((row["chain"], row["emitter"])[:parts])} if parts else {ALL}
        by_key = daily.setdefault(row["date"].isoformat(), {ALL: 0})
        for key in keys:
            by_key[key] = by_key.get(key, 0) + row["messages"]
            total[key] = total.get(key, 0) + row["messages"]
    for by_key in daily.values():
        for key in total:
            by_key.setdefault(key, 0)
    return {
        "LastDayCount": daily[last.isoformat()],
        "TotalCount": total,
        "TotalCountDurationDays": (last - first).days,
        "DailyTotals": dict(sorted(daily.items())),
    }


def _counted(rows: Rows, request: EdbRequest, table: str, first: date, last: date) -> list[Row]:
    bound = Parameters()
    conditions = [f"date BETWEEN {bound.add(first)} AND {bound.add(last)}"]
    if request.chain is not None:
        conditions.append(f"split_part(row_key, ':', 1) = {bound.add(str(request.chain))}")
    if request.address is not None:
        conditions.append(f"split_part(row_key, ':', 2) = {bound.add(request.address)}")
    return rows(
        "SELECT date, split_part(row_key, ':', 1) AS chain, split_part(row_key, ':', 2) AS emitter, "  # noqa: S608
        f"count(*) AS messages FROM {table} WHERE {' AND '.join(conditions)} GROUP BY ALL",
        bound,
        **{table: Scan(first, last)},
    )
