"""The one way in which tables of the lake change: compare and set, and a record of it.

Whoever changes tables reads where they stand, writes beside, and moves their pointers in one transaction that
fails where one has moved meanwhile. Then it begins anew, on top of what the other has written.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from types import MappingProxyType
from typing import TypeVar

from sqlalchemy import Connection, func, insert, select, update

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.advisory_locks import AdvisoryLock
from permalake.lake.catalog import locations, move_pointer
from permalake.lake.database import Database
from permalake.lake.publication_log import write_log
from permalake.lake.record import AttemptRow
from permalake.lake.state import (
    PUBLISHED,
    attempt_tables,
    clock,
    days,
    moment,
    networks,
    publication_tables,
    publications,
    stamp,
)

T = TypeVar("T")
TRIES = 20
"""The number of times that a change begins anew before it is given up."""
_SKEW = timedelta(days=1)
_EARLIEST = "2026"  # a clock that shows an earlier year is wrong: it was never set
log = logging.getLogger(__name__)


class MovedMeanwhileError(Exception):
    """Raised where another process has moved a table; the transaction is rolled back."""


def change(settings: Settings, database: Database, what: str, once: Callable[[], T]) -> T:
    """Return what ``once`` does, called anew after a pause while others are faster; then write the log.

    ``once`` reads pointers, writes beside, and calls :func:`move` in a transaction.

    Raises:
        PermalakeError: when others keep on publishing; ``what`` names the change and what to do again.
    """
    for number in range(TRIES):
        try:
            done = once()
        except MovedMeanwhileError:
            # A random time that grows with the number of tries, up to seconds.
            time.sleep(random.uniform(0, 0.05 * 2 ** min(number, 6)))  # noqa: S311
        else:
            write_log(settings, database)
            return done
    name, _, again = what.rpartition("; ")
    raise PermalakeError(f"{name}: others kept on publishing; {again}")


def move(
    connection: Connection, network: str, moves: Mapping[str, tuple[str, str]], of: str = PUBLISHED
) -> None:
    """Move the pointers of some tables, each from its former to its new location.

    Raises:
        MovedMeanwhileError: where one stands elsewhere now.
    """
    for name, (old, new) in sorted(moves.items()):
        if not move_pointer(connection, of, network, name, old=old, new=new):
            raise MovedMeanwhileError(name)


def record_publication(
    connection: Connection,
    attempt: AttemptRow,
    kind: str,
    moved: dict[str, str],
    *,
    replayed: bool = False,
    withdrawn: Mapping[date, Sequence[str]] = MappingProxyType({}),
    withheld: Mapping[date, str] = MappingProxyType({}),
) -> tuple[int, str]:
    """Record what was moved; return the publication's id and time, which rise together.

    ``withdrawn``: tables that have no rows of a day any more; ``withheld``: days that stay as they were, with
    the reason.
    """
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
            withdrawn=json.dumps({str(day): list(tables) for day, tables in sorted(withdrawn.items())}),
            withheld=json.dumps({str(day): reason for day, reason in sorted(withheld.items())}),
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
    AdvisoryLock.PUBLICATION.take(connection)  # numbers and times rise together
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
    network = attempt.network

    def once() -> str:
        with database.write() as connection:
            published = locations(connection, PUBLISHED, network)[table]
            _rebase(connection, attempt, table, published)
        write(published)
        with database.write() as connection:
            written = locations(connection, attempt.attempt_id, network).get(table)
            if written is None:
                raise PermalakeError(f"{network}: the staging of run {attempt.run_id} was superseded")
            if written != published:
                move(connection, network, {table: (published, written)})
                _rebase(connection, attempt, table, written)
                record_publication(connection, attempt, kind, {table: written})
        return written

    return change(settings, database, f"{network}.{table}; run it again", once)


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
