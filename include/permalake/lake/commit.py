"""Writing down what was moved when, and moving a single table."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import Connection, func, insert, select, update

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.catalog import locations, move_pointer
from permalake.lake.publication_log import write_log
from permalake.lake.record import AttemptRow
from permalake.lake.state import (
    PUBLISHED,
    Database,
    attempt_tables,
    clock,
    days,
    moment,
    networks,
    publication_tables,
    publications,
    stamp,
)

_TRIES = 12
_SKEW = timedelta(days=1)
_EARLIEST = "2026"  # a clock that shows an earlier year is wrong: it was never set
_LOCK = 7_365_213  # any number that no other advisory lock of the database uses
log = logging.getLogger(__name__)


def back_off(number: int) -> None:
    """Let others finish: pause for a random time that grows with the number of tries, up to seconds."""
    time.sleep(random.uniform(0, 0.05 * 2 ** min(number, 6)))  # noqa: S311


def record_publication(
    connection: Connection, attempt: AttemptRow, kind: str, moved: dict[str, str], replayed: bool = False
) -> tuple[int, str]:
    """Record what was moved; return the publication's id and time, which rise together."""
    published_at = _next_time(connection)
    inserted = connection.execute(
        insert(publications).values(
            kind=kind,
            network=attempt.network,
            start=attempt.start,
            end=attempt.end,
            attempt_id=attempt.attempt_id,
            run_id=attempt.run_id,
            fingerprint=attempt.fingerprint,
            replayed=int(replayed),
            published_at=published_at,
        )
    )
    (publication_id,) = inserted.inserted_primary_key or (0,)
    if moved:
        connection.execute(
            insert(publication_tables),
            [
                {
                    "publication_id": publication_id,
                    "network": attempt.network,
                    "table_name": name,
                    "metadata_location": location,
                }
                for name, location in sorted(moved.items())
            ],
        )
    return publication_id, published_at


def _next_time(connection: Connection) -> str:
    """Return the time of a publication: by the database's clock, and never before that of an earlier one.

    A clock that was once days ahead must not date all that follows: what it dated gets the time of now.
    """
    if (
        connection.dialect.name == "postgresql"
    ):  # numbers and times rise together; sqlite has one writer anyway
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
    now = clock(connection)
    last = connection.execute(select(func.max(publications.c.published_at))).scalar()
    if last is None or last <= now:
        return now
    if now < _EARLIEST or last <= stamp(moment(now) + _SKEW):
        return str(last)
    for table in (publications, days):
        connection.execute(update(table).where(table.c.published_at > now).values(published_at=now))
    ahead = networks.c.history_from > now
    connection.execute(update(networks).where(ahead).values(history_from=now))
    log.warning("publications dated up to %s, in the future, are dated %s now", last, now)
    return now


def commit_apart(
    settings: Settings,
    database: Database,
    attempt: AttemptRow,
    table: str,
    *,
    kind: str,
    write: Callable[[str], None],
) -> str:
    """Publish one table at once; return its published metadata location.

    ``write`` puts rows into the staged table, whose state is the published one at the location that it
    gets. It is called again if another process published that table meanwhile.
    """
    for number in range(_TRIES):
        with database.write() as connection:
            published = locations(connection, PUBLISHED, attempt.network)[table]
            _rebase(connection, attempt, table, published)
        write(published)
        with database.write() as connection:
            written = locations(connection, attempt.attempt_id, attempt.network).get(table)
            if written is None:
                raise PermalakeError(f"{attempt.network}: the staging of run {attempt.run_id} was superseded")
            if written == published:
                return published
            if move_pointer(connection, PUBLISHED, attempt.network, table, old=published, new=written):
                _rebase(connection, attempt, table, written)
                record_publication(connection, attempt, kind, {table: written})
                break
        back_off(number)
    else:
        raise PermalakeError(f"{attempt.network}.{table}: others kept on writing; run it again")
    write_log(settings, database)
    return written


def _rebase(connection: Connection, attempt: AttemptRow, table: str, location: str) -> None:
    """Let the staged pointer and its base follow what is published: the table is no part of a later swap."""
    staged = locations(connection, attempt.attempt_id, attempt.network).get(table)
    if staged is not None and staged != location:
        move_pointer(connection, attempt.attempt_id, attempt.network, table, old=staged, new=location)
    connection.execute(
        update(attempt_tables)
        .where(attempt_tables.c.attempt_id == attempt.attempt_id, attempt_tables.c.table_name == table)
        .values(base_location=location, pinned_location=None)
    )
