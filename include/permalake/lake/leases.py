"""Leases: of each kind of work one run at a time over any day of a network, others in parallel.

A lease is kept alive by a heartbeat; a holder that was killed stops blocking after
:data:`EXPIRES_AFTER`, or at once where its owner (:mod:`permalake.lake.owner`) is gone from this machine. The
same run re-enters at once.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from permalake.errors import CatalogUnavailableError, PermalakeError
from permalake.lake.catalog import ensure_network
from permalake.lake.database import Database
from permalake.lake.owner import OWNER, is_gone
from permalake.lake.state import clock, leases, moment, networks, stamp

DAYS = "days"
CARRY = "carry"
MAINTENANCE = "maintenance"
LIVE = "live"
"""Kinds of lease, which do not exclude each other; the name of a store is one more: who writes into it."""
EXPIRES_AFTER = timedelta(seconds=120)
BEAT_SECONDS = 20.0
_POLL_SECONDS = 1.0


class LeaseLostError(PermalakeError):
    """Raised where a run would write though another may hold its lease by now."""


def oldest_beat(connection: Connection) -> str:
    """Return the time of the last heartbeat before which a lease counts as abandoned."""
    return stamp(moment(clock(connection)) - EXPIRES_AFTER)


def take(
    database: Database,
    network: str,
    start: date,
    end: date,
    *,
    run_id: str,
    kind: str = DAYS,
    wait: float = 0.0,
) -> str:
    """Acquire the lease of start..end for ``run_id``, waiting up to ``wait`` seconds for another run.

    Returns:
        The time at which it was taken, as its row has it: a newer process of the same run has another one.

    Raises:
        PermalakeError: if another run still holds an overlapping range of that kind; it names the run.
    """
    give_up = time.monotonic() + wait
    while True:
        with database.write() as connection:
            is_known = lock_network(connection, network)
            taken_at = clock(connection)
            refusal = (
                _take(connection, network, start, end, run_id=run_id, kind=kind, taken_at=taken_at)
                if is_known
                else None
            )
        if not is_known:
            ensure_network(database, network)
            continue
        if refusal is None:
            return taken_at
        if time.monotonic() >= give_up:
            raise PermalakeError(refusal)
        time.sleep(min(_POLL_SECONDS, max(0.0, give_up - time.monotonic())))


def lock_network(connection: Connection, network: str) -> bool:
    """Lock the network's row until the transaction ends; return False if there is none.

    PostgreSQL lets two transactions look for leases at once; each would miss the other's. Whoever changes the
    records of several days locks it first: two such transactions would wait for each other without end.
    """
    row = networks.c.network == network
    return connection.execute(update(networks).where(row).values(turn=networks.c.turn + 1)).rowcount > 0


def _take(
    connection: Connection, network: str, start: date, end: date, *, run_id: str, kind: str, taken_at: str
) -> str | None:
    """Acquire the lease, or return a line that names the holder."""
    overlap = (
        leases.c.network == network,
        leases.c.kind == kind,
        leases.c.start <= end,
        leases.c.end >= start,
    )
    others = connection.execute(
        select(leases).where(*overlap, leases.c.run_id != run_id, leases.c.beat_at >= oldest_beat(connection))
    ).all()
    other = next((row for row in others if not is_gone(row.owner)), None)
    if other is not None:
        return f"{_work_of(other)} by run {other.run_id} since {other.taken_at[:19]}Z; wait for it or end it"
    connection.execute(delete(leases).where(*overlap))
    connection.execute(
        insert(leases).values(
            network=network,
            kind=kind,
            start=start,
            end=end,
            run_id=run_id,
            owner=os.environ.get(OWNER),
            taken_at=taken_at,
            beat_at=taken_at,
        )
    )
    return None


def _work_of(row: Row[Any]) -> str:
    """Return what the holder of a lease is doing, as a message begins with it."""
    if row.kind == DAYS:
        return f"{row.network} {format_range(row.start, row.end)} is being built"
    verbs = {CARRY: "carried", MAINTENANCE: "maintained", LIVE: "followed live"}
    return f"{row.network} is being {verbs.get(row.kind, f'written into {row.kind}')}"


def release(database: Database, network: str, run_id: str) -> None:
    """Release all leases that a run holds of a network; runs of two networks may share an id."""
    mine = (leases.c.network == network, leases.c.run_id == run_id)
    with database.write() as connection:
        connection.execute(delete(leases).where(*mine))


def release_days(
    connection: Connection,
    network: str,
    start: date,
    end: date,
    *,
    run_id: str,
    kind: str = DAYS,
    taken_at: str | None = None,
) -> None:
    """Release the lease of one range; with ``taken_at``, unless its run has taken it again since."""
    mine = (
        leases.c.network == network,
        leases.c.kind == kind,
        leases.c.start == start,
        leases.c.end == end,
        leases.c.run_id == run_id,
    )
    same = () if taken_at is None else (leases.c.taken_at == taken_at,)
    connection.execute(delete(leases).where(*mine, *same))


def holds(connection: Connection, network: str, kind: str, run_id: str) -> bool:
    """Return whether the lease of a kind is still that of a run, which may have been taken for dead.

    It stays so until the transaction ends, if that has locked the network (:func:`lock_network`).
    """
    mine = (leases.c.network == network, leases.c.kind == kind, leases.c.run_id == run_id)
    return connection.execute(select(leases.c.run_id).where(*mine)).first() is not None


def beat(database: Database, network: str, run_id: str, kind: str = DAYS) -> bool:
    """Send a heartbeat; return False if the lease is gone."""
    mine = (leases.c.network == network, leases.c.kind == kind, leases.c.run_id == run_id)
    with database.write() as connection:
        return connection.execute(update(leases).where(*mine).values(beat_at=clock(connection))).rowcount > 0


@contextmanager
def alone(database: Database, network: str, kind: str, run_id: str, wait: float = 0.0) -> Iterator[Heartbeat]:
    """Hold the only lease of a kind of a network, with a heartbeat, as long as the block lasts.

    Raises:
        PermalakeError: if another run still holds it after ``wait`` seconds; it names the run.
    """
    taken_at = take(database, network, date.min, date.max, run_id=run_id, kind=kind, wait=wait)
    try:
        with Heartbeat(database, network, run_id, kind) as heartbeat:
            yield heartbeat
    finally:
        with database.write() as connection:
            release_days(connection, network, date.min, date.max, run_id=run_id, kind=kind, taken_at=taken_at)


class Heartbeat:
    """Heartbeats in the background, while a ``with`` block lasts and the lease is held."""

    def __init__(self, database: Database, network: str, run_id: str, kind: str = DAYS) -> None:
        self._stop = threading.Event()
        threading.Thread(
            target=_keep_alive,
            args=(database, network, run_id, kind, self._stop),
            name=f"lease of {run_id}",
            daemon=True,
        ).start()
        weakref.finalize(self, self._stop.set)

    @property
    def beating(self) -> bool:
        """Whether the block still lasts."""
        return not self._stop.is_set()

    def __enter__(self) -> Heartbeat:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()


def _keep_alive(database: Database, network: str, run_id: str, kind: str, stop: threading.Event) -> None:
    while not stop.wait(BEAT_SECONDS):
        try:
            if not beat(database, network, run_id, kind):
                return
        except (SQLAlchemyError, CatalogUnavailableError):
            # A database that is away for a moment is no reason to lose the lease; the next beat tries again.
            continue


def format_range(start: date, end: date) -> str:
    """Return a range of days as messages name it."""
    return str(start) if start == end else f"{start}..{end}"
