"""Records of the stores: days that are due, and states of the lake that may have left rows there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Connection, and_, func, select, update

from permalake.lake.state import days, now, served, upsert

State = dict[str, str]
"""Table -> metadata location, as one read of the catalog gave it."""


@dataclass(frozen=True)
class DueDay:
    """A published day that a store does not have as it is published now."""

    day: date
    publication_id: int
    states: tuple[State, ...]


def due(connection: Connection, network: str, store: str) -> list[DueDay]:
    """Days to be written, in the order in which they were published, whatever run published them."""
    here = and_(served.c.network == days.c.network, served.c.date == days.c.date, served.c.store == store)
    rows = connection.execute(
        select(days.c.date, days.c.publication_id, served.c.states)
        .select_from(days.outerjoin(served, here))
        .where(
            days.c.network == network,
            days.c.publication_id.is_not(None),
            served.c.publication_id.is_(None) | (served.c.publication_id != days.c.publication_id),
        )
        .order_by(days.c.publication_id, days.c.date)
    )
    return [DueDay(row.date, row.publication_id, tuple(json.loads(row.states or "[]"))) for row in rows]


@dataclass(frozen=True)
class HeldDay:
    """A day that a store holds as a publication has it, and the write time of its rows in microseconds."""

    publication_id: int
    micros: int


def whole(connection: Connection, network: str, store: str) -> dict[date, HeldDay]:
    """Return the days that a store holds as they are published now."""
    here = and_(served.c.network == days.c.network, served.c.date == days.c.date)
    rows = connection.execute(
        select(days.c.date, days.c.publication_id, served.c.micros)
        .select_from(days.join(served, here))
        .where(
            days.c.network == network,
            served.c.store == store,
            served.c.publication_id == days.c.publication_id,
        )
    )
    return {row.date: HeldDay(row.publication_id, row.micros) for row in rows}


def begun(connection: Connection, network: str, store: str) -> tuple[list[date], int]:
    """Return the days that were begun and are not whole, and a write time.

    The time lies between those of publishes up to now and those to come.
    """
    mine = (served.c.network == network, served.c.store == store)
    cut = connection.execute(
        select(served.c.date).where(*mine, served.c.publication_id.is_(None), served.c.states != "[]")
    )
    last = connection.execute(select(func.max(served.c.micros)).where(*mine)).scalar() or 0
    return sorted(row.date for row in cut), last + 1


def begin(connection: Connection, network: str, store: str, due_days: list[DueDay], state: State) -> int:
    """Record that rows of ``state`` may be in the store from now on; return the write time.

    It is in microseconds and later than that of every publish before.
    """
    mine = (served.c.network == network, served.c.store == store)
    last = connection.execute(select(func.max(served.c.micros)).where(*mine)).scalar() or 0
    # Three write times a publish: deletes before it, rows, and room to the next one.
    micros = max(time.time_ns() // 1000, last + 3)
    for due_day in due_days:
        states = [*(earlier for earlier in due_day.states if earlier != state), state]
        _set(
            connection,
            network,
            store,
            due_day.day,
            states=json.dumps(states),
            micros=micros,
            publication_id=None,
        )
    return micros


def finish(connection: Connection, network: str, store: str, due_days: list[DueDay], state: State) -> None:
    """Record that the store has these days whole, as ``state`` has them and nothing else."""
    for due_day in due_days:
        _set(
            connection,
            network,
            store,
            due_day.day,
            publication_id=due_day.publication_id,
            served_at=now(),
            states=json.dumps([state]),
            error=None,
        )


def fail(connection: Connection, network: str, store: str, due_days: Iterable[DueDay], reason: str) -> None:
    """Record that these days are still due, and why."""
    for due_day in due_days:
        _set(connection, network, store, due_day.day, error=" ".join(reason.split()))


def provisional(connection: Connection, network: str, store: str) -> dict[date, list[State]]:
    """Return the states of a live head of which rows may be in the store, by day that is not published.

    The last one is what the store is to have, those before it what it may have still.
    """
    here = and_(served.c.network == days.c.network, served.c.date == days.c.date)
    rows = connection.execute(
        select(served.c.date, served.c.states)
        .select_from(served.outerjoin(days, and_(here, days.c.publication_id.is_not(None))))
        .where(
            served.c.network == network,
            served.c.store == store,
            served.c.states != "[]",
            days.c.publication_id.is_(None),
        )
    )
    return {row.date: json.loads(row.states) for row in rows}


def note(
    connection: Connection, network: str, store: str, of_days: Iterable[date], states: Sequence[State]
) -> None:
    """Record the states of a live head of which rows may be in the store."""
    for day in of_days:
        _set(connection, network, store, day, states=json.dumps(list(states)))


def lose(connection: Connection, network: str, store: str) -> None:
    """Record that the store may have lost what it had of a live head."""
    for day, states in provisional(connection, network, store).items():
        note(connection, network, store, [day], [{}, *states])


def forget(
    connection: Connection, network: str, store: str, start: date = date.min, end: date = date.max
) -> None:
    """Record that the store has lost start..end: every published day of them is due."""
    mine = (served.c.network == network, served.c.store == store, served.c.date.between(start, end))
    connection.execute(update(served).where(*mine).values(publication_id=None))


def _set(connection: Connection, network: str, store: str, day: date, **values: object) -> None:
    key = {"network": network, "store": store, "date": day}
    upsert(connection, served, key, values, {"states": "[]", "micros": 0})
