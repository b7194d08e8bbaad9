"""Changing a published table without changing its rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from pyiceberg.table import Table as IcebergTable

from permalake.config import Settings
from permalake.lake import leases
from permalake.lake.catalog import copy_pointers, drop_pointers, locations, open_catalog
from permalake.lake.commit import change, move, record_publication
from permalake.lake.database import Database
from permalake.lake.maintenance.history import PRIVATE
from permalake.lake.publication_log import check_not_behind
from permalake.lake.record import AttemptRow
from permalake.lake.state import PUBLISHED, now


@dataclass(frozen=True)
class Work:
    """One maintenance of a network, which is alone while it lasts."""

    settings: Settings
    database: Database
    network: str
    run_id: str
    catalog: str  # private, for what nobody shall see yet


@contextmanager
def alone(settings: Settings, database: Database, network: str, run_id: str) -> Iterator[Work]:
    """Maintain the network as the only one who does; builds go on beside.

    Raises:
        PermalakeError: if another maintenance is at work; it names its run.
    """
    check_not_behind(settings, database)
    with leases.alone(database, network, leases.MAINTENANCE, run_id):
        work = Work(settings, database, network, run_id, f"{PRIVATE}{uuid.uuid4().hex[:12]}")
        try:
            yield work
        finally:
            with database.write() as connection:
                drop_pointers(connection, work.catalog)


def change_table(work: Work, table: str, edit: Callable[[IcebergTable], object], of: str = PUBLISHED) -> bool:
    """Publish what ``edit`` makes of the table under ``of``, by compare and set; return whether it changed.

    ``edit`` gets the table as it is there now, in a private catalog, and is called again if a day was
    published meanwhile. It must leave the rows as they are: other tables do not move with it.
    """

    def once() -> bool:
        with work.database.write() as connection:
            published = locations(connection, of, work.network)[table]
            copy_pointers(connection, work.catalog, work.network, {table: published})
        catalog = open_catalog(work.settings, work.catalog)
        try:
            edited = catalog.load_table((work.network, table))
            edit(edited)
            new = edited.metadata_location
        finally:
            catalog.close()
        if new == published:
            return False
        with work.database.write() as connection:
            move(connection, work.network, {table: (published, new)}, of)
            if of == PUBLISHED:
                record_publication(connection, _record(work), leases.MAINTENANCE, {table: new})
        return True

    return change(work.settings, work.database, f"{work.network}.{table}; maintain it again", once)


def _record(work: Work) -> AttemptRow:
    """Return who publishes, for the record of a publication."""
    return AttemptRow(
        attempt_id=work.catalog,
        network=work.network,
        start=date.min,
        end=date.min,
        run_id=work.run_id,
        state="open",
        begun_at=now(),
        pinned_at=None,
        fingerprint="",
        publication_id=None,
    )
