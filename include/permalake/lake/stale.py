"""Stale days: published ones whose input or basis has changed since.

``permalake status`` names them with the reason, the next run over them builds them although nothing else
changed, and their publication clears them. What is marked while a day is being built counts for that build
too: it began on the old state.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import date

from sqlalchemy import Connection, delete, func, insert, select, update

from permalake.intervals import dates
from permalake.lake import record
from permalake.lake.leases import DAYS
from permalake.lake.record import AttemptRow
from permalake.lake.state import attempts, clock, days, outdated, publications

_LONGEST = 500
_MORE = "; and more"


def mark(connection: Connection, network: str, start: date, end: date, reason: str) -> None:
    """Mark published days of start..end (inclusive) stale, and what is being built of them too."""
    line = " ".join(reason.split())[:_LONGEST]
    connection.execute(
        insert(outdated).values(
            network=network, start=start, end=end, reason=line, marked_at=clock(connection)
        )
    )
    _apply(connection, network, start, end, line)


def expect(
    connection: Connection, attempt: AttemptRow, start: date, end: date, reason: str, *, cause: date
) -> None:
    """start..end become stale when the attempt publishes its day ``cause``."""
    row = {"attempt_id": attempt.attempt_id, "network": attempt.network, "start": start, "end": end}
    line = " ".join(reason.split())[:_LONGEST]
    same_row = select(outdated.c.id).where(
        *(outdated.c[name] == value for name, value in row.items()),
        outdated.c.reason == line,
        outdated.c.cause == cause,
    )
    if connection.execute(same_row).first() is None:
        connection.execute(insert(outdated).values(**row, reason=line, cause=cause))


def published(connection: Connection, attempt: AttemptRow, published_days: Collection[date]) -> None:
    """Apply what the attempt announced, and to its published days what others marked since it began.

    Days published together are consistent: announcements do not touch them.
    """
    for row in connection.execute(
        select(outdated).where(
            outdated.c.network == attempt.network,
            outdated.c.start <= attempt.end,
            outdated.c.end >= attempt.start,
            outdated.c.marked_at >= attempt.begun_at,
        )
    ).all():
        first, last = max(row.start, attempt.start), min(row.end, attempt.end)
        _apply(connection, attempt.network, first, last, row.reason)
    announced = connection.execute(
        select(outdated).where(outdated.c.attempt_id == attempt.attempt_id, outdated.c.marked_at.is_(None))
    ).all()
    for row in announced:
        if row.cause not in published_days:
            continue
        connection.execute(
            update(outdated).where(outdated.c.id == row.id).values(marked_at=clock(connection))
        )
        _apply(connection, attempt.network, row.start, row.end, row.reason, besides=published_days)


def forget(connection: Connection, network: str) -> None:
    """Drop what no attempt that is still open began before."""
    oldest = connection.execute(
        select(func.min(attempts.c.begun_at)).where(attempts.c.network == network, attempts.c.state == "open")
    ).scalar()
    done = (outdated.c.network == network, outdated.c.marked_at < (oldest or clock(connection)))
    connection.execute(delete(outdated).where(*done))


def listed(connection: Connection, network: str) -> list[date]:
    """Stale days in order."""
    rows = connection.execute(
        select(days.c.date)
        .where(days.c.network == network, days.c.stale_reason.is_not(None))
        .order_by(days.c.date)
    )
    return [row.date for row in rows]


def _apply(
    connection: Connection,
    network: str,
    start: date,
    end: date,
    line: str,
    *,
    besides: Collection[date] = (),
) -> None:
    _record_empty_days(connection, network, start, end)
    here = (
        days.c.network == network,
        days.c.date.not_in(list(besides)),
        days.c.date.between(start, end),
        days.c.published_at.is_not(None),
    )
    text = days.c.stale_reason
    new = (text.is_not(None), ~text.contains(line, autoescape=True), ~text.endswith(_MORE))
    for length_rule, added in (
        (func.length(text) >= _LONGEST, _MORE),
        (func.length(text) < _LONGEST, f"; {line}"),
    ):
        connection.execute(update(days).where(*here, *new, length_rule).values(stale_reason=text + added))
    connection.execute(update(days).where(*here, text.is_(None)).values(stale_reason=line))


def _record_empty_days(connection: Connection, network: str, start: date, end: date) -> None:
    """Give the days of start..end a record that were published without rows, and so may have none."""
    recorded_days = record.known_days(connection, network, start, end)
    newest_first = connection.execute(
        select(publications)
        .where(
            publications.c.network == network,
            publications.c.kind == DAYS,
            publications.c.start <= end,
            publications.c.end >= start,
        )
        .order_by(publications.c.id.desc())
    ).all()
    for row in newest_first:
        withheld = json.loads(row.withheld or "{}")
        for day in dates(max(start, row.start), min(end, row.end)):
            if day in recorded_days or day.isoformat() in withheld:
                continue
            recorded_days.add(day)
            record.set_day(
                connection,
                network,
                day,
                run_id=row.run_id,
                attempt_id=row.attempt_id,
                published_at=row.published_at,
                publication_id=row.id,
                rows="{}",
            )
