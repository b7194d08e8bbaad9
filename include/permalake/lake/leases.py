"""Who builds which days: one run at a time over any day of a network, others in parallel.

A lease is kept alive by a heartbeat; a holder that was killed stops blocking after
:data:`EXPIRES_AFTER`, or at once where it named the process that it ends with (:data:`OWNER`) and that one is
gone from this machine. The same run re-enters at once.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import weakref
from datetime import date, timedelta
from typing import Any

import psutil
from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from permalake.errors import PermalakeError
from permalake.lake.state import Database, clock, leases, moment, networks, stamp

EXPIRES_AFTER = timedelta(seconds=120)
BEAT_SECONDS = 20.0
OWNER = "PERMALAKE_RUN_OWNER"
_POLL_SECONDS = 1.0


def this_process() -> str:
    """Return this process as :data:`OWNER` names it: machine, process id and start time."""
    return f"{platform.node()} {os.getpid()} {psutil.Process().create_time():.2f}"


def _is_gone(row: Row[Any]) -> bool:
    """Return whether the lease names its owner and that process no longer runs on this machine."""
    machine, _, process = (row.owner or "").partition(" ")
    if not process or machine != platform.node():
        return False
    number, _, started = process.partition(" ")
    try:
        return f"{psutil.Process(int(number)).create_time():.2f}" != started
    except psutil.NoSuchProcess:
        return True


def oldest_beat(connection: Connection) -> str:
    """Return the time of the last heartbeat before which a lease counts as abandoned."""
    return stamp(moment(clock(connection)) - EXPIRES_AFTER)


def take(database: Database, network: str, start: date, end: date, *, run_id: str, wait: float = 0.0) -> None:
    """Acquire the lease of start..end for ``run_id``, waiting up to ``wait`` seconds for another run.

    Raises:
        PermalakeError: if another run still holds an overlapping range; it names the run.
    """
    give_up = time.monotonic() + wait
    while True:
        with database.write() as connection:
            holder = _take(connection, network, start, end, run_id)
        if holder is None:
            return
        if time.monotonic() >= give_up:
            raise PermalakeError(holder)
        time.sleep(min(_POLL_SECONDS, max(0.0, give_up - time.monotonic())))


def _take(connection: Connection, network: str, start: date, end: date, run_id: str) -> str | None:
    """Acquire the lease, or return a line that names the holder."""
    row = networks.c.network == network.partition("/")[0]
    connection.execute(update(networks).where(row).values(turn=networks.c.turn + 1))
    overlap = (leases.c.network == network, leases.c.start <= end, leases.c.end >= start)
    taken_at = clock(connection)
    others = connection.execute(
        select(leases).where(*overlap, leases.c.run_id != run_id, leases.c.beat_at >= oldest_beat(connection))
    ).all()
    other = next((row for row in others if not _is_gone(row)), None)
    if other is not None:
        return (
            f"{network} {spell(other.start, other.end)} is being built by run {other.run_id} since "
            f"{other.taken_at[:19]}Z; wait for it or end it"
        )
    connection.execute(delete(leases).where(*overlap))
    connection.execute(
        insert(leases).values(
            network=network,
            start=start,
            end=end,
            run_id=run_id,
            owner=os.environ.get(OWNER),
            taken_at=taken_at,
            beat_at=taken_at,
        )
    )
    return None


def release(database: Database, run_id: str) -> None:
    """Release all leases of ``run_id``."""
    with database.write() as connection:
        connection.execute(delete(leases).where(leases.c.run_id == run_id))


def release_days(connection: Connection, network: str, start: date, end: date, run_id: str) -> None:
    """Release the lease of one range."""
    connection.execute(
        delete(leases).where(
            leases.c.network == network,
            leases.c.start == start,
            leases.c.end == end,
            leases.c.run_id == run_id,
        )
    )


def beat(database: Database, network: str, run_id: str) -> bool:
    """Send a heartbeat; return False if the lease is gone."""
    mine = (leases.c.network == network, leases.c.run_id == run_id)
    with database.write() as connection:
        return connection.execute(update(leases).where(*mine).values(beat_at=clock(connection))).rowcount > 0


class Heartbeat:
    """Heartbeats in the background, while a ``with`` block lasts and the lease is held."""

    def __init__(self, database: Database, network: str, run_id: str) -> None:
        self._stop = threading.Event()
        threading.Thread(
            target=_keep_alive,
            args=(database, network, run_id, self._stop),
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


def _keep_alive(database: Database, network: str, run_id: str, stop: threading.Event) -> None:
    while not stop.wait(BEAT_SECONDS):
        try:
            if not beat(database, network, run_id):
                return
        except SQLAlchemyError:
            # A database that is away for a moment is no reason to lose the lease; the next beat tries again.
            continue


def spell(start: date, end: date) -> str:
    """Return a range of days as messages name it."""
    return str(start) if start == end else f"{start}..{end}"
