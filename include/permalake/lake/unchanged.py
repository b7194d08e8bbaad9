"""Days that need no build: published from the very input of now."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from sqlalchemy import Connection, Row, select

from permalake.lake.state import days, publications


def is_unchanged(connection: Connection, network: str, start: date, end: date, fingerprint: str) -> bool:
    """Return whether every day of start..end was last published from input with this fingerprint.

    Days that are refused, failed or stale since, or that their last publication withheld, count as changed.
    """
    troubled = connection.execute(
        select(days.c.date).where(
            days.c.network == network,
            days.c.date.between(start, end),
            days.c.refused.is_not(None) | (days.c.audited == "failed") | days.c.stale_reason.is_not(None),
        )
    ).first()
    if troubled:
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
