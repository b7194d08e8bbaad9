"""Publishing: all tables of the passing days at once, or none."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from datetime import date

from sqlalchemy import Connection, select

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake import record
from permalake.lake.apart import record_publication
from permalake.lake.attempt import Attempt
from permalake.lake.catalog import locations, move_pointer
from permalake.lake.leases import spell
from permalake.lake.replay import replay
from permalake.lake.state import PUBLISHED, Database, attempts, days, publications

_TRIES = 20
Counts = dict[str, dict[date, int]]


@dataclass(frozen=True)
class Publication:
    """What a publish did. ``id`` is None when no day passed, and then nothing moved.

    ``days``: published days that hold rows or held rows before; ``withheld``: days that stay as they were,
    with the reason; ``replayed``: others had published meanwhile, or a day was withheld; ``repeated``: it
    had been published before.
    """

    id: int | None
    network: str
    start: date
    end: date
    published_at: str | None = None
    days: tuple[date, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    withheld: dict[date, str] = field(default_factory=dict)
    replayed: bool = False
    repeated: bool = False


def publish(settings: Settings, database: Database, attempt: Attempt) -> Publication:
    """Move the pinned tables' pointers of the attempt's passing days in one transaction."""
    with database.read() as connection:
        if done := _earlier(connection, attempt):
            return done
        pinned = record.pinned_locations(connection, attempt.id)
        base = record.base_locations(connection, attempt.id)
        pinned_at = connection.execute(
            select(attempts.c.pinned_at).where(attempts.c.attempt_id == attempt.id)
        ).scalar()
    if pinned_at is None:
        raise PermalakeError(f"{_named(attempt)}: nothing is pinned; audit it before it is published")
    counted = attempt.counts()
    withheld = _withheld(database, attempt, counted)
    if withheld and not _anything_left(attempt, withheld):
        return Publication(None, attempt.network, attempt.start, attempt.end, withheld=withheld)
    for number in range(_TRIES):
        with database.read() as connection:
            current = locations(connection, PUBLISHED, attempt.network)
        moves = _moves(settings, database, attempt, current, base, pinned, withheld)
        try:
            return _move(database, attempt, pinned, moves, counted, withheld)
        except _Conflict:
            time.sleep(random.uniform(0, 0.05 * 2 ** min(number, 6)))  # noqa: S311
    raise PermalakeError(f"{_named(attempt)}: others kept on publishing; publish it again")


def _named(attempt: Attempt) -> str:
    return f"{attempt.network} {spell(attempt.start, attempt.end)}"


def _anything_left(attempt: Attempt, withheld: dict[date, str]) -> bool:
    return len(withheld) < (attempt.end - attempt.start).days + 1


def _withheld(database: Database, attempt: Attempt, counted: Counts) -> dict[date, str]:
    """Days that must not be published, with the reason; every other day with rows has passed its audit."""
    with database.read() as connection:
        refused = record.refusals(connection, attempt.id)
        verdicts = record.verdicts(connection, attempt.id)
    failed = {
        day: "audit failed: " + ("; ".join(lines) or "no expectation named")
        for day, (ok, lines) in verdicts.items()
        if not ok
    }
    present = {day for per_day in counted.values() for day in per_day}
    if unjudged := sorted(present - set(refused) - set(verdicts)):
        raise PermalakeError(
            f"{attempt.network} {unjudged[0]}: not audited yet; audit it before it is published"
        )
    return dict(sorted((failed | refused).items()))


def _moves(
    settings: Settings,
    database: Database,
    attempt: Attempt,
    current: dict[str, str],
    base: dict[str, str],
    pinned: dict[str, str],
    withheld: dict[date, str],
) -> dict[str, tuple[str, str]]:
    """Table -> (pointer now, pointer then): the staged state itself where nobody was faster."""
    moves = {name: (current[name], at) for name, at in pinned.items()}
    stale = {name: move for name, move in moves.items() if withheld or current[name] != base[name]}
    if stale:
        replayed = replay(
            settings,
            database,
            attempt.network,
            stale,
            attempt.start,
            attempt.end,
            lambda day: day not in withheld,
        )
        moves |= {name: (current[name], at) for name, at in replayed.items()}
    return moves


class _Conflict(Exception):  # noqa: N818
    """Another process published one of the tables meanwhile: the transaction is rolled back."""


def _swap(connection: Connection, network: str, moves: dict[str, tuple[str, str]]) -> None:
    for name, (old, new) in sorted(moves.items()):
        if not move_pointer(connection, PUBLISHED, network, name, old, new):
            raise _Conflict(name)


def _move(
    database: Database,
    attempt: Attempt,
    pinned: dict[str, str],
    moves: dict[str, tuple[str, str]],
    counted: Counts,
    withheld: dict[date, str],
) -> Publication:
    replayed = any(new != pinned[name] for name, (_, new) in moves.items())
    with database.write() as connection:
        if done := _earlier(connection, attempt):
            return done
        _check_standing(connection, attempt)
        _swap(connection, attempt.network, moves)
        return _record(connection, attempt, moves, counted, withheld, replayed)


def _check_standing(connection: Connection, attempt: Attempt) -> None:
    """A run that lost its lease (it was taken for dead) must not undo what its successor published."""
    row = record.load(connection, attempt.id)
    if row is None or row.state != "open":
        raise PermalakeError(
            f"{_named(attempt)}: the staging of run {attempt.run_id} was superseded; run it again"
        )


def _earlier(connection: Connection, attempt: Attempt) -> Publication | None:
    """The publication of this very attempt, when it was published before."""
    found = connection.execute(
        select(publications).where(publications.c.attempt_id == attempt.id, publications.c.kind == "days")
    ).first()
    if found is None:
        return None
    published = connection.execute(
        select(days.c.date, days.c.rows)
        .where(days.c.network == attempt.network, days.c.publication_id == found.id)
        .order_by(days.c.date)
    ).all()
    rows: dict[str, int] = {}
    for _, text in published:
        for name, count in json.loads(text or "{}").items():
            rows[name] = rows.get(name, 0) + count
    return Publication(
        found.id,
        attempt.network,
        attempt.start,
        attempt.end,
        found.published_at,
        tuple(row.date for row in published),
        rows,
        record.refusals(connection, attempt.id),
        bool(found.replayed),
        repeated=True,
    )


def _record(
    connection: Connection,
    attempt: Attempt,
    moves: dict[str, tuple[str, str]],
    counted: Counts,
    withheld: dict[date, str],
    replayed: bool,
) -> Publication:
    row = record.load(connection, attempt.id)
    if row is None:
        raise PermalakeError(f"{_named(attempt)}: the attempt is gone; run it again")
    moved = {name: new for name, (_, new) in moves.items()}
    publication_id, published_at = record_publication(connection, row, "days", moved, replayed)
    whole, single = record.notes(connection, attempt.id)
    present = {day for per_day in counted.values() for day in per_day}
    known = record.known_days(connection, attempt.network, attempt.start, attempt.end)
    published = sorted((present | known) - set(withheld))
    totals: dict[str, int] = {}
    for day in published:
        rows = {name: per_day.get(day, 0) for name, per_day in sorted(counted.items())}
        for name, count in rows.items():
            totals[name] = totals.get(name, 0) + count
        record.set_day(
            connection,
            attempt.network,
            day,
            published_at=published_at,
            publication_id=publication_id,
            run_id=attempt.run_id,
            attempt_id=attempt.id,
            refused=None,
            stale_reason=None,
            rows=json.dumps({name: count for name, count in rows.items() if count}),
            notes=json.dumps([*whole, *single.get(day, [])]),
        )
    record.close(connection, attempt.id, "published", publication_id)
    return Publication(
        publication_id,
        attempt.network,
        attempt.start,
        attempt.end,
        published_at,
        tuple(published),
        totals,
        withheld,
        replayed,
    )
