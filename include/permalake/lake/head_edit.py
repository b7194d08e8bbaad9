"""Changes of a network's head: new states of its tables, prepared apart and moved in one transaction.

Pointers of a head stand under :data:`~permalake.lake.state.LIVE`. Whoever changes it prepares the new states
in a private catalog, then moves all pointers if the head still is what it was. The network's row lock orders
these transactions, so that a day never is in the head and published at once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from sqlalchemy import Connection, delete, select

from permalake.config import Settings
from permalake.contracts.namespaces import live_namespace
from permalake.lake.catalog import (
    LEAVES_WITH_LATER_DAYS,
    UnreadableTableError,
    copy_pointers,
    drop_pointers,
    locations,
    move_pointer,
    open_catalog,
    open_table,
    snapshots_since,
)
from permalake.lake.counts import day_of, days_between, files
from permalake.lake.database import Database
from permalake.lake.head_position import forget_position
from permalake.lake.replay import Moves
from permalake.lake.state import LIVE, days, pointers

LOG = logging.getLogger(__name__)
_AT_ONCE = 4
KEPT = timedelta(minutes=15)
"""The time for which readers may use a state of the head after it was replaced."""
_MANY_SNAPSHOTS = 64


@dataclass(frozen=True, slots=True)
class TableChange:
    """Files that a table of the head loses, and those that it gets."""

    removed: Sequence[DataFile] = ()
    added: Sequence[DataFile] = ()


@dataclass(frozen=True, slots=True)
class HeadEdit:
    """A prepared change: the head as it must still be (table -> location), and the pointers to move.

    With ``is_end`` the head is dropped as a whole.
    """

    network: str
    base: Mapping[str, str]
    moves: Moves
    is_end: bool = False

    def apply(self, connection: Connection) -> bool:
        """Move the pointers within a transaction; return False, and move none, if the head has changed.

        The caller has locked the network.
        """
        namespace = live_namespace(self.network)
        if locations(connection, LIVE, namespace) != self.base:
            return False
        if self.is_end:
            drop_head(connection, self.network)
        for name, (old, new) in sorted(self.moves.items()):
            move_pointer(connection, LIVE, namespace, name, old=old, new=new)
        return True


def prepare(
    settings: Settings,
    database: Database,
    network: str,
    *,
    catalog: str,
    base: Mapping[str, str],
    changes: Mapping[str, TableChange],
) -> HeadEdit:
    """Write the new states of the changed tables; nobody sees them yet. ``catalog`` names a private one."""
    namespace = live_namespace(network)
    changed = {name: change for name, change in changes.items() if change.removed or change.added}
    if not changed:
        return HeadEdit(network, base, {})
    with database.write() as connection:
        copy_pointers(connection, catalog, namespace, {name: base[name] for name in changed})

    def edited(name: str) -> str:
        opened = open_catalog(settings, catalog)
        try:
            table = opened.load_table((namespace, name))
            _change(table, changed[name])
            return table.metadata_location
        finally:
            opened.close()

    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            made = dict(zip(changed, pool.map(edited, changed), strict=True))
    finally:
        with database.write() as connection:
            drop_pointers(connection, catalog)
    return HeadEdit(network, base, {name: (base[name], new) for name, new in made.items()})


def without_days(
    settings: Settings, database: Database, network: str, catalog: str, gone: Collection[date]
) -> HeadEdit:
    """Prepare the head without the rows of some days, which are about to be published.

    What no milestone references yet may be in any day from its own on: it leaves with a later one too.

    No publication fails for the head: one whose files are damaged is dropped, and read from the source again.
    """
    with database.read() as connection:
        base = locations(connection, LIVE, live_namespace(network))
    try:
        changes = {name: TableChange(removed=_leaving(location, gone)) for name, location in base.items()}
    except UnreadableTableError as damaged:
        LOG.warning("%s: its head is dropped: %s", network, damaged)
        return HeadEdit(network, base, {}, is_end=True)
    return prepare(settings, database, network, catalog=catalog, base=base, changes=changes)


def _leaving(location: str, gone: Collection[date]) -> list[DataFile]:
    if not gone or LEAVES_WITH_LATER_DAYS not in open_table(location).properties:
        return of_days(location, gone)
    return [file for file in _read_files(location) if day_of(file) <= max(gone)]


def drop_head(connection: Connection, network: str) -> None:
    """Forget the head of a network; its files stay until they are swept."""
    connection.execute(
        delete(pointers).where(
            pointers.c.catalog_name == LIVE, pointers.c.table_namespace == live_namespace(network)
        )
    )
    forget_position(connection, network)


def drop_prepared(connection: Connection, network: str) -> None:
    """Forget changes of a head that were prepared and not applied; the run that prepares one then fails."""
    private = pointers.c.catalog_name.startswith(f"{LIVE}_", autoescape=True)
    of_head = pointers.c.table_namespace == live_namespace(network)
    left = select(pointers.c.catalog_name).where(of_head, private).distinct()
    for catalog in connection.execute(left).scalars().all():
        drop_pointers(connection, catalog)


def of_days(location: str, days: Collection[date]) -> list[DataFile]:
    """Return the files of some days of the table that a metadata file describes."""
    return [file for file in _read_files(location) if day_of(file) in days]


def _read_files(location: str) -> Iterator[DataFile]:
    """Read every manifest, none from memory: one that is damaged shows here."""
    return files(open_table(location), days_between(date.min, date.max))


def published_among(connection: Connection, network: str, candidates: Collection[date]) -> set[date]:
    """Return which of some days are published."""
    rows = connection.execute(
        select(days.c.date).where(
            days.c.network == network, days.c.date.in_(sorted(candidates)), days.c.publication_id.is_not(None)
        )
    )
    return set(rows.scalars())


def _change(table: IcebergTable, change: TableChange) -> None:
    with table.transaction() as transaction:
        update = transaction.update_snapshot()
        with update.overwrite() if change.removed else update.merge_append() as producer:
            for file in change.removed:
                producer.delete_data_file(file)
            for file in change.added:
                producer.append_data_file(file)
    if len(table.metadata.snapshots) > _MANY_SNAPSHOTS:
        kept = {snapshot.snapshot_id for snapshot in snapshots_since(table, datetime.now(UTC) - KEPT)}
        if gone := {snapshot.snapshot_id for snapshot in table.metadata.snapshots} - kept:
            table.maintenance.expire_snapshots().by_ids(sorted(gone)).commit()
