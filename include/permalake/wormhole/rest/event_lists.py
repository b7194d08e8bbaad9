"""Lists of messages by time, which read no more days than a page needs.

The id index and the daily counts name the days that hold a list's messages; they are read from one end, a
portion at a time, until the page is full. Messages whose body has no real time are few, and stand at the old
end. Messages of synthetic days stand in a list only where it asks for a time, or has no real ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from permalake.lake.serving import EVERYTHING, Scan
from permalake.web.state import RequestLake
from permalake.web.synthetic import is_synthetic
from permalake.wormhole.codec.applications.decode import TOKEN_BRIDGE_APP
from permalake.wormhole.codec.vaa import GENESIS_TIME
from permalake.wormhole.contracts.tables import MESSAGE_PUBLICATION
from permalake.wormhole.rest.event_filter import TARGET_TABLES, EventFilter, EventKey
from permalake.wormhole.rest.rows import Parameters

_GROWTH = 4
_CARRIERS = (TOKEN_BRIDGE_APP, "GENERIC_RELAYER")
_PUBLICATION = MESSAGE_PUBLICATION.name
Counts = dict[date, dict[int, int]]
"""Messages by day and chain of the emitter."""


@dataclass(frozen=True)
class _Question:
    """A list: at most ``limit`` messages behind ``after`` (time and row key), in the order of time."""

    event_filter: EventFilter
    limit: int
    newest: bool
    after: tuple[datetime, str] | None


def list_events(
    lake: RequestLake,
    event_filter: EventFilter,
    limit: int,
    *,
    newest: bool = True,
    skip: int = 0,
    after: tuple[datetime, str] | None = None,
) -> list[EventKey]:
    """Return messages in the order of their time, then row key.

    Args:
        lake: The published state.
        event_filter: Which messages.
        limit: How many at most.
        newest: Whether the newest come first.
        skip: Number of messages to pass over.
        after: Time and row key of the last one of the page before.
    """
    question = _Question(event_filter, limit + skip, newest, after)
    days = _days(lake, event_filter)
    timeless = [day for day in days if day in _timeless_days(lake)]
    listed: list[EventKey] = []
    if not newest:
        listed += _ask(lake, question, timeless, real=False)
    for portion in _portions(lake, question, days):
        if len(listed) >= question.limit:
            break
        listed += _ask(lake, replace(question, limit=question.limit - len(listed)), portion, real=True)
    if newest and len(listed) < question.limit:
        listed += _ask(lake, replace(question, limit=question.limit - len(listed)), timeless, real=False)
    return listed[skip : skip + limit]


def _days(lake: RequestLake, event_filter: EventFilter) -> list[date]:
    """Return the days that may hold the messages, in order; those of a live head have no daily sums."""
    days = set(lake.snapshot.days(lake.network, _PUBLICATION))
    for lookups in event_filter.lookups:
        named: set[date] = set()
        for table, column, value in lookups:
            named.update(lake.find(table, column, value).days or ())
        days &= named
    if event_filter.target_chain is not None:
        days &= _days_to_chain(lake, event_filter.target_chain)
    summed = set(days)
    if event_filter.chain is not None:
        summed &= {day for day, chains in _counts(lake).items() if event_filter.chain in chains}
    if event_filter.token is not None:
        summed &= _days_of_token(lake, event_filter.token, Scan(event_filter.start, event_filter.end))
    if event_filter.app_id is not None:
        summed &= _days_of_application(lake, event_filter.app_id)
    days = summed | (days & lake.snapshot.head_days)
    if not event_filter.is_timed:
        days = {day for day in days if not is_synthetic(day)} or days
    first, last = event_filter.first_day, event_filter.end
    return sorted(day for day in days if (not first or day >= first) and (not last or day <= last))


def _days_to_chain(lake: RequestLake, target_chain: int) -> set[date]:
    """Return the days with a file that may move something to a chain, by the bounds of the files."""
    tables = (lake.snapshot.table(lake.network, name) for name in TARGET_TABLES)
    files = (file for table in tables if table for file in table.files)
    bounds = ((file.day, file.bounds.get("target_chain")) for file in files)
    return {day for day, bound in bounds if bound is None or bound[0] <= target_chain <= bound[1]}


def _days_of_token(lake: RequestLake, token: tuple[int, str], part: Scan) -> set[date]:
    rows = lake.rows(
        "SELECT DISTINCT date FROM notional_transferred_daily "
        "WHERE origin_chain = $chain AND origin_address = $address",
        {"chain": token[0], "address": token[1]},
        notional_transferred_daily=part,
    )
    return {row["date"] for row in rows}


def _days_of_application(lake: RequestLake, app_id: str) -> set[date]:
    """Return the days with a message of an application, or with one that it may carry."""
    rows = lake.rows(
        "SELECT DISTINCT date FROM applications_daily WHERE app_id = $app OR $carries",
        {"app": app_id, "carries": app_id in _CARRIERS},
        applications_daily=EVERYTHING,
    )
    return {row["date"] for row in rows}


def _counts(lake: RequestLake) -> Counts:
    def derive() -> Counts:
        counts: Counts = {}
        for row in lake.rows(
            "SELECT date, emitter_chain, verified FROM messages_daily WHERE verified > 0",
            messages_daily=EVERYTHING,
        ):
            counts.setdefault(row["date"], {})[row["emitter_chain"]] = row["verified"]
        return counts

    return lake.once("messages by day and chain", derive)


def _timeless_days(lake: RequestLake) -> set[date]:
    """Return the days that may have messages whose body has no real time, by the bounds of their files."""

    def derive() -> set[date]:
        table = lake.snapshot.table(lake.network, _PUBLICATION)
        first = int(GENESIS_TIME.timestamp()) * 1_000_000
        files = table.files if table else ()
        return {file.day for file in files if file.bounds.get("timestamp", (0, 0))[0] < first}

    return lake.once("days with timeless messages", derive)


def _portions(lake: RequestLake, question: _Question, days: Sequence[date]) -> Iterator[list[date]]:
    """Yield the days from the list's beginning, first as many as should fill the page, then ever more."""
    event_filter, counts = question.event_filter, _counts(lake)
    wished = 2 * question.limit
    portion: list[date] = []
    total = 0
    for day in sorted(days, reverse=question.newest):
        if question.after and (
            day > question.after[0].date() if question.newest else day < question.after[0].date()
        ):
            continue
        chains = counts.get(day, {})
        total += chains.get(event_filter.chain, 0) if event_filter.chain is not None else sum(chains.values())
        portion.append(day)
        if total >= wished:
            yield portion
            portion, total, wished = [], 0, wished * _GROWTH
    if portion:
        yield portion


def _ask(lake: RequestLake, question: _Question, days: Sequence[date], *, real: bool) -> list[EventKey]:
    """Return the messages of some days whose time is, or is not, real."""
    if not days or question.limit <= 0:
        return []
    bound = Parameters()
    conditions = question.event_filter.conditions(bound)
    conditions.append(f"p.timestamp {'>=' if real else '<'} {bound.add(GENESIS_TIME)}")
    if question.after is not None:
        time, key = bound.add(question.after[0]), bound.add(question.after[1])
        sign = "<" if question.newest else ">"
        conditions.append(f"(p.timestamp {sign} {time} OR (p.timestamp = {time} AND p.row_key {sign} {key}))")
    joins = question.event_filter.joins()
    joined = "".join(
        f"JOIN {table} {alias} ON {alias}.row_key = p.row_key AND {alias}.date = p.date "
        for alias, table in joins.items()
    )
    order = "DESC" if question.newest else "ASC"
    scan = Scan(days=frozenset(days))
    rows = lake.rows(
        f"SELECT p.row_key, p.date, p.timestamp FROM message_publication p {joined}"  # noqa: S608
        f"WHERE {' AND '.join(conditions)} "
        f"ORDER BY p.timestamp {order}, p.row_key {order} LIMIT {bound.add(question.limit)}",
        bound,
        **dict.fromkeys((_PUBLICATION, *joins.values(), *question.event_filter.beside()), scan),
    )
    return [EventKey(**row) for row in rows]
