"""Messages of the lake: which ones a request asks for, and their rows in every table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from permalake.lake.serving import Scan
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import ATTESTED_TOKENS, MESSAGE_PUBLICATION
from permalake.wormhole.rest.identifiers import MessageId
from permalake.wormhole.rest.rows import Parameters, Row, Rows

EVENT_TABLES = tuple(
    name
    for name, table in WORMHOLE_TABLES.items()
    if "row_key" in table.names and name != ATTESTED_TOKENS.name
)
"""Tables with rows of a message."""
PUBLICATION = MESSAGE_PUBLICATION.name
_FIRST_REAL_TIME = datetime(2020, 8, 1, tzinfo=UTC)
"""Bodies with an earlier time stand at another date (SPEC section 5)."""


@dataclass(frozen=True)
class EventKey:
    """A message by row key, with its partition and its place in the order of time."""

    row_key: str
    date: date
    timestamp: datetime


@dataclass(frozen=True)
class EventFilter:
    """Which messages to list; None or an empty tuple asks for all."""

    start: date | None = None
    end: date | None = None
    chain: int | None = None
    emitter: str | None = None
    target_chain: int | None = None
    token: tuple[int, str] | None = None
    transactions: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def first_day(self) -> date | None:
        """First partition that can match."""
        # A body's time tells its day only from then on.
        timed = self.since.date() if self.since and _aware(self.since) >= _FIRST_REAL_TIME else None
        return max(filter(None, (self.start, timed)), default=None)

    def conditions(self, bound: Parameters) -> list[str]:
        """Return conditions on ``p`` (publication), ``t`` (transfer) and ``c`` (chain details)."""
        single = {
            "p.date >=": self.start,
            "p.date <=": self.end,
            "p.timestamp >=": self.since and _aware(self.since),
            "p.timestamp <=": self.until and _aware(self.until),
            "p.emitter_chain =": self.chain,
            "p.emitter_address =": self.emitter,
            "t.target_chain =": self.target_chain,
            "t.origin_chain =": self.token[0] if self.token else None,
            "t.origin_address =": self.token[1] if self.token else None,
        }
        found = [f"{text} {bound.add(value)}" for text, value in single.items() if value is not None]
        if self.transactions:
            found.append(f"p.initiating_tx_id IN ({bound.add_all(self.transactions)})")
        if self.addresses:
            names = bound.add_all(self.addresses)
            found.append(f"(c.sender_address IN ({names}) OR c.receiver_address IN ({names}))")
        return found

    def joins(self) -> dict[str, str]:
        """Return the tables beside message_publication that the conditions need, by alias."""
        needed = {"t": self.target_chain is not None or self.token is not None, "c": bool(self.addresses)}
        tables = {"t": "token_transfer_payload", "c": "chain_details"}
        return {alias: table for alias, table in tables.items() if needed[alias]}


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def find(rows: Rows, message: MessageId) -> EventKey | None:
    """Return the key of one message; None where it is not published."""
    found = rows(
        "SELECT row_key, date, timestamp FROM message_publication WHERE row_key = $key",
        {"key": message.row_key},
        message_publication=Scan(),
    )
    return EventKey(**found[0]) if found else None


def list_events(
    rows: Rows,
    wanted: EventFilter,
    limit: int,
    *,
    newest: bool = True,
    skip: int = 0,
    after: tuple[datetime, str] | None = None,
) -> list[EventKey]:
    """Return messages in the order of their time, then row key.

    Args:
        rows: The published state.
        wanted: Which messages.
        limit: How many at most.
        newest: Whether the newest come first.
        skip: Number of messages to pass over.
        after: Time and row key of the last one of the page before.
    """
    question = _Question(wanted, limit, newest, skip, after)
    if newest and not wanted.transactions:
        recent = _newest_days(rows, question)
        if recent is not None:
            found = question.ask(rows, recent)
            if len(found) == limit:
                return found
    return question.ask(rows, None)


@dataclass(frozen=True)
class _Question:
    wanted: EventFilter
    limit: int
    newest: bool
    skip: int
    after: tuple[datetime, str] | None

    def ask(self, rows: Rows, since: date | None) -> list[EventKey]:
        """Return the messages; ``since`` leaves out days before it, and times that no chain can have had."""
        bound = Parameters()
        conditions = self.wanted.conditions(bound)
        if since is not None:
            conditions.append(f"p.timestamp >= {bound.add(_FIRST_REAL_TIME)}")
        if self.after is not None:
            time, key = bound.add(self.after[0]), bound.add(self.after[1])
            sign = "<" if self.newest else ">"
            conditions.append(
                f"(p.timestamp {sign} {time} OR (p.timestamp = {time} AND p.row_key {sign} {key}))"
            )
        joins = self.wanted.joins()
        joined = "".join(
            f"JOIN {table} {alias} ON {alias}.row_key = p.row_key AND {alias}.date = p.date "
            for alias, table in joins.items()
        )
        order = "DESC" if self.newest else "ASC"
        scan = Scan(max(filter(None, (self.wanted.first_day, since)), default=None), self.wanted.end)
        found = rows(
            f"SELECT p.row_key, p.date, p.timestamp FROM message_publication p {joined}"  # noqa: S608
            f"{'WHERE ' if conditions else ''}{' AND '.join(conditions)} "
            f"ORDER BY p.timestamp {order}, p.row_key {order} "
            f"LIMIT {bound.add(self.limit)} OFFSET {bound.add(self.skip)}",
            bound,
            **dict.fromkeys(("message_publication", *joins.values()), scan),
        )
        return [EventKey(**one) for one in found]


def _newest_days(rows: Rows, question: _Question) -> date | None:
    """Return the first of the newest days that together hold twice what is asked for, by the daily counts."""
    bound = Parameters()
    wanted = question.wanted
    conditions = ["verified > 0"]
    if wanted.chain is not None:
        conditions.append(f"emitter_chain = {bound.add(wanted.chain)}")
    last = min(filter(None, (wanted.end, question.after[0].date() if question.after else None)), default=None)
    if last is not None:
        conditions.append(f"date <= {bound.add(last)}")
    days = rows(
        "SELECT date, CAST(sum(verified) AS BIGINT) AS messages FROM messages_daily "  # noqa: S608
        f"WHERE {' AND '.join(conditions)} GROUP BY date ORDER BY date DESC",
        bound,
        messages_daily=Scan(wanted.first_day, last),
    )
    total = 0
    for day in days:
        total += day["messages"]
        if total >= 2 * (question.limit + question.skip):
            first: date = day["date"]
            return max(first, _FIRST_REAL_TIME.date())
    return None


def load(
    rows: Rows, keys: Sequence[EventKey], tables: Iterable[str] = EVENT_TABLES
) -> list[dict[str, list[Row]]]:
    """Return the rows of each message by table, in the order of the keys; a table without one is left out."""
    found: dict[str, dict[str, list[Row]]] = {key.row_key: {} for key in keys}
    if not keys:
        return []
    days = sorted({key.date for key in keys})
    for table in tables:
        bound = Parameters()
        for row in rows(
            f"SELECT * FROM {table} WHERE date IN ({bound.add_all(days)}) "  # noqa: S608
            f"AND row_key IN ({bound.add_all(key.row_key for key in keys)}) ORDER BY ALL",
            bound,
            **{table: Scan(days=days)},
        ):
            found[row["row_key"]].setdefault(table, []).append(row)
    return [found[key.row_key] for key in keys]
