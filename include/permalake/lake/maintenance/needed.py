"""Which files of the warehouse somebody may still read, from Iceberg's metadata alone.

A metadata file is needed by whoever points to it; with it go the manifest lists of those of its snapshots
that may be read, their manifests, and the data files that live in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from pyiceberg.manifest import ManifestFile, read_manifest_list
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Snapshot
from sqlalchemy import Connection, select

from permalake.errors import PermalakeError
from permalake.lake.catalog import open_table, snapshots_since
from permalake.lake.maintenance import history
from permalake.lake.maintenance.limits import Limits
from permalake.lake.state import PUBLISHED, pointers
from permalake.lake.warehouse_files import RUNBOOK, fault_of
from permalake.net.object_storage import inner_path

_AT_ONCE = 8
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass
class Root:
    """A metadata file that somebody points to.

    ``every``: all snapshots that it lists may be read, else the current one alone; ``since``: and those that
    were current then or later.
    """

    table: str
    location: str
    every: bool = False
    since: datetime | None = None

    def snapshots(self, table: IcebergTable) -> list[Snapshot]:
        """Snapshots whose files are needed."""
        return table.metadata.snapshots if self.every else snapshots_since(table, self.since)


@dataclass
class Needed:
    """Paths as the file system knows them, by table; ``lacking`` says why a table's are not known."""

    paths: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    lacking: dict[str, str] = field(default_factory=dict)


def roots(connection: Connection, network: str, limits: Limits) -> list[Root]:
    """Return everything that points to a metadata file of the network, in one read of the catalog."""
    by_table: dict[tuple[str, str], Root] = {}

    def add(table: str, location: str, every: bool = False, since: datetime | None = None) -> None:
        root = by_table.setdefault((table, location), Root(table, location))
        root.every |= every
        root.since = since if root.since is None else root.since

    given_up = set(history.abandoned(connection, network, limits))
    rows = connection.execute(
        select(pointers.c.catalog_name, pointers.c.table_name, pointers.c.metadata_location).where(
            pointers.c.table_namespace == network
        )
    )
    for catalog, table, location in rows:
        if catalog == PUBLISHED:
            add(table, location, since=limits.history)
        elif catalog.removesuffix("_replay") not in given_up and not catalog.startswith(history.PRIVATE):
            add(table, location, every=True)
    for table, location, is_open in history.attempt_states(connection, network, limits):
        add(table, location, every=is_open)
    for state in history.past_states(connection, network, limits)[0]:
        add(state.table, state.location)
    for table, location in history.served_states(connection, network):
        add(table, location)
    return list(by_table.values())


def needed(table_roots: Iterable[Root]) -> Needed:
    """Return the files that the roots need.

    A file that cannot be read makes its table ``lacking``: what is not known to be needless must stay.
    """
    result = Needed()
    lists: dict[str, tuple[Root, Snapshot, IcebergTable]] = {}
    for root, table in _each(table_roots, lambda root: open_table(root.location), result, lambda root: root):
        result.paths[root.table].add(inner_path(root.location))
        for statistics in (*table.metadata.statistics, *table.metadata.partition_statistics):
            result.paths[root.table].add(inner_path(statistics.statistics_path))
        for snapshot in root.snapshots(table):
            result.paths[root.table].add(inner_path(snapshot.manifest_list))
            lists.setdefault(snapshot.manifest_list, (root, snapshot, table))
    manifests: dict[str, tuple[Root, ManifestFile, IcebergTable]] = {}
    opened = _each(
        lists.values(),
        lambda entry: list(read_manifest_list(entry[2].io.new_input(entry[1].manifest_list))),
        result,
        lambda entry: entry[0],
    )
    for (root, _, table), held in opened:
        for manifest in held:
            result.paths[root.table].add(inner_path(manifest.manifest_path))
            manifests.setdefault(manifest.manifest_path, (root, manifest, table))
    read = _each(
        manifests.values(),
        lambda entry: entry[1].fetch_manifest_entry(entry[2].io),
        result,
        lambda entry: entry[0],
    )
    for (root, _, _), entries in read:
        result.paths[root.table].update(inner_path(entry.data_file.file_path) for entry in entries)
    return result


def _each(
    items: Iterable[_In], read: Callable[[_In], _Out], into: Needed, root_of: Callable[[_In], Root]
) -> Iterator[tuple[_In, _Out]]:
    """Yield every item with what reading it gave, several at once; note what fails at its table."""

    def read_or_error(item: _In) -> _Out | Exception:
        try:
            return read(item)
        except Exception as error:  # noqa: BLE001 - a damaged file makes readers raise anything
            return error

    every_item = list(items)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for item, result in zip(every_item, pool.map(read_or_error, every_item), strict=True):
            if isinstance(result, Exception):
                root = root_of(item)
                into.lacking[root.table] = (
                    str(result)
                    if isinstance(result, PermalakeError)
                    else f"a manifest of {root.location} cannot be read: {fault_of(result)}; see {RUNBOOK}"
                )
            else:
                yield item, result
