"""Days that need no build, published from the very input of now; and days that still need one."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, select

from permalake.intervals import dates
from permalake.lake.database import Database
from permalake.lake.state import days, publications

_FAILED = days.c.refused.is_not(None) | (days.c.audited == "failed")


def is_unchanged(connection: Connection, network: str, start: date, end: date, fingerprint: str) -> bool:
    """Return whether every day of start..end was last published from input with this fingerprint.

    Days that are refused, failed or stale since, or that their last publication withheld, count as changed.
    """
    troubled = _FAILED | days.c.stale_reason.is_not(None)
    if connection.execute(select(days.c.date).where(_within(network, start, end), troubled)).first():
        return False
    open_ranges = [(start.toordinal(), end.toordinal())]
    for row in _latest_first(connection, network, start, end):
        rest = _without(open_ranges, row.start.toordinal(), row.end.toordinal())
        if rest != open_ranges and row.fingerprint != fingerprint:
            return False
        withheld = map(date.fromisoformat, json.loads(row.withheld or "{}"))
        if any(a <= day.toordinal() <= b for day in withheld for a, b in open_ranges):
            return False
        open_ranges = rest
    return not open_ranges


def not_built(database: Database, network: str, start: date, end: date) -> list[date]:
    """Return the days of start..end that were never published, or failed when they were built last.

    A day without rows counts as published only beside others: where no day has rows, all are returned.
    """
    here = _within(network, start, end)
    is_published = days.c.published_at.is_not(None)
    with database.read() as connection:
        failed = set(connection.execute(select(days.c.date).where(here, _FAILED)).scalars())
        published = set(connection.execute(select(days.c.date).where(here, is_published)).scalars())
        latest_first = _latest_first(connection, network, start, end)
    if not published:
        return dates(start, end)
    left = set(dates(start, end)) - failed - published
    for row in latest_first:  # days without rows have no state of their own
        failed |= left & set(map(date.fromisoformat, json.loads(row.withheld or "{}")))
        left = {day for day in left if not row.start <= day <= row.end}
    return sorted(failed | left)


def _within(network: str, start: date, end: date) -> ColumnElement[bool]:
    return and_(days.c.network == network, days.c.date.between(start, end))


def _latest_first(connection: Connection, network: str, start: date, end: date) -> list[Row[Any]]:
    return list(
        connection.execute(
            select(publications)
            .where(
                publications.c.network == network,
                publications.c.kind == "days",
                publications.c.start <= end,
                publications.c.end >= start,
            )
            .order_by(publications.c.id.desc())
        )
    )


def _without(spans: list[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    """Return what is left of inclusive ranges without first..last."""
    return [
        piece
        for a, b in spans
        for piece in ((a, min(b, first - 1)), (max(a, last + 1), b))
        if piece[0] <= piece[1]
    ]
