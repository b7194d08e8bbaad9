"""Positions of networks' heads: one row each, moved in the transaction that adds a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from permalake.lake.database import Database
from permalake.lake.state import clock, days, heads, moment, stamp

LISTENED = "listened"
"""Member of ``Reached.source`` of a source without a past: ``until`` when somebody listened to
it, and the ``gaps`` in which nobody did (pairs of unix seconds)."""


@dataclass(frozen=True, slots=True)
class HeadPosition:
    """The position of a network's head.

    ``index``: its last milestone; None where the network has no milestones. ``at``: the time that its last
    milestone or message has at the source. ``moved``: when that was added to the head. ``gaps``: from when
    to when nobody listened to a source that tells nothing of before.
    """

    network: str
    index: int | None
    at: datetime
    moved: datetime
    gaps: tuple[tuple[datetime, datetime], ...] = ()

    def lag(self) -> float:
        """Return the seconds since ``at``, never below zero."""
        return max((datetime.now(UTC) - self.at).total_seconds(), 0.0)

    def __str__(self) -> str:
        if self.index is not None:
            return f"milestone {self.index}"
        return f"{self.at:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Reached:
    """The position after a batch: the last milestone, if the network has any, and a time (unix seconds).

    ``source``: how far a source without milestones was read, as JSON has it.
    """

    index: int | None
    timestamp: int
    source: Mapping[str, Any] | None = None


def set_position(connection: Connection, network: str, reached: Reached) -> None:
    """Record how far a head is."""
    forget_position(connection, network)
    row = {
        "network": network,
        "position": reached.index or 0,
        "position_at": stamp(datetime.fromtimestamp(reached.timestamp, UTC)),
        "moved_at": clock(connection),
        "source": None if reached.source is None else json.dumps(reached.source),
    }
    connection.execute(insert(heads).values(**row))


def forget_position(connection: Connection, network: str) -> None:
    """Forget how far a head is: its source is read from the beginning."""
    connection.execute(delete(heads).where(heads.c.network == network))


def last_reached(database: Database, network: str) -> Reached | None:
    """Return what the last batch of a head has reached, whatever is published since."""
    with database.read() as connection:
        row = connection.execute(select(heads).where(heads.c.network == network)).one_or_none()
    if row is None:
        return None
    source = None if row.source is None else json.loads(row.source)
    index = row.position if source is None else None
    return Reached(index, int(moment(row.position_at).timestamp()), source)


def head_positions(database: Database) -> dict[str, HeadPosition]:
    """Return the position of every head, by network; of a day that is published there is no head."""
    with database.read() as connection:
        rows = connection.execute(select(heads)).all()
        published = {
            (row.network, row.date.isoformat())
            for row in connection.execute(
                select(days.c.network, days.c.date).where(
                    days.c.network.in_([row.network for row in rows]), days.c.publication_id.is_not(None)
                )
            )
        }
    return {
        row.network: HeadPosition(
            row.network,
            row.position if row.source is None else None,
            moment(row.position_at),
            moment(row.moved_at),
            _gaps(row.source),
        )
        for row in rows
        if (row.network, row.position_at[:10]) not in published
    }


def _gaps(source: str | None) -> tuple[tuple[datetime, datetime], ...]:
    listened = json.loads(source).get(LISTENED) if source else None
    spans = listened.get("gaps", ()) if isinstance(listened, dict) else ()
    return tuple(
        (datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)) for first, last in spans
    )
