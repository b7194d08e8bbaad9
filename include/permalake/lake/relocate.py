"""Making a lake whole where its warehouse lies now, after it was copied or moved.

Iceberg's files, the catalog and the log of publications hold absolute paths. Files are rewritten first, the
catalog last and in one transaction, so that every command goes on refusing the lake until it is whole; a
killed relocation is run again. Staged work that nobody published is dropped.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby

from sqlalchemy import Column, Connection, and_, bindparam, delete, select, update

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.catalog import table_of
from permalake.lake.database import Database
from permalake.lake.identity import (
    RELOCATION,
    catalog_id,
    mark_warehouse,
    places_elsewhere,
    warehouse_id,
    warehouse_of,
)
from permalake.lake.maintenance.limits import limits
from permalake.lake.maintenance.needed import Needed, Root, needed, roots
from permalake.lake.maintenance.storage import listing
from permalake.lake.moved_table import MovedTable
from permalake.lake.publication_log import logged_ids, read_logged, write_logged
from permalake.lake.restore import RestoredNetwork, check_restored, rebuild
from permalake.lake.state import (
    PUBLISHED,
    STORES,
    attempt_tables,
    attempts,
    clock,
    heads,
    lake_ids,
    leases,
    moment,
    namespaces,
    networks,
    pointers,
    provisional,
    publication_tables,
    served,
)
from permalake.net.object_storage import lies_in
from permalake.spark.catalog_database import catalog_url

_AT_ONCE = 8
_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_PLACES = (
    pointers.c.metadata_location,
    pointers.c.previous_metadata_location,
    attempt_tables.c.base_location,
    attempt_tables.c.pinned_location,
    publication_tables.c.metadata_location,
)


@dataclass
class RelocatedNetwork:
    """The result for a network's tables; ``problems``: files that are missing or damaged, and how."""

    network: str
    tables: int = 0
    rewritten: int = 0
    present: int = 0
    problems: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the line for a user."""
        return (
            f"{self.network}: {self.tables:,} tables, {self.rewritten:,} files rewritten, "
            f"{self.present:,} files present"
        )


def relocate(settings: Settings, *, as_copy: bool) -> list[RelocatedNetwork]:
    """Let everything that the lake records of its files name their place below ``lake.warehouse``.

    Past states stay readable as far as maintenance kept them. An empty catalog is built again from the
    warehouse. ``as_copy``: the original goes on, so this lake gets an id of its own, and forgets what the
    stores hold, which is the original's.

    Raises:
        PermalakeError: if the original still holds the lake and this is not ``as_copy``, or a copy shares its
            catalog with the original, or the warehouse holds no lake.
    """
    database = Database(catalog_url(settings))
    restored: list[RestoredNetwork] = []
    with database.write() as connection:
        is_empty = catalog_id(connection) is None
        elsewhere = _former_places(settings, connection)
        as_copy = as_copy and (is_empty or bool(elsewhere))  # done already, it keeps its id
        former, lake_id = _ids(settings, connection, as_copy)
        if as_copy and not is_empty and not _is_in_warehouse(settings):
            raise PermalakeError(
                "lake.catalog lies outside the warehouse, so it may be the original's: give the copy an "
                f"empty database of its own, which relocate fills from the warehouse; see {RELOCATION}"
            )
        if not as_copy and (original := _original(settings, elsewhere, former)):
            raise PermalakeError(
                f"the original in {original} still holds this lake: --copy makes a lake of its own of the "
                f"one in {settings.lake.warehouse}; to move it here, rename or remove the original first"
            )
        _rewrite_log(settings, lake_id)
        if is_empty:
            restored = rebuild(settings, connection)
        _rewrite_catalog(settings, connection, lake_id, as_copy)
        done = [_rewrite_files(settings, connection, network) for network in _networks(connection)]
        if lake_id != former:
            mark_warehouse(settings, lake_id)
    for network in restored:
        check_restored(database, network)
    return done


def _ids(settings: Settings, connection: Connection, as_copy: bool) -> tuple[str, str]:
    """Return the lake's former id and the one that it has from now on.

    The id of a copy follows from the original's and the place, so that a killed relocation finds it again.
    """
    recorded, stored = catalog_id(connection), warehouse_id(settings)
    if stored is None:
        raise PermalakeError(
            f"the warehouse {settings.lake.warehouse} has no lake id: it holds no lake, or _lake.json was "
            f"not copied; see {RELOCATION}"
        )
    former = recorded or stored
    copied = str(uuid.uuid5(uuid.UUID(former), settings.lake.warehouse))
    if stored not in {former, copied}:
        raise PermalakeError(
            f"the catalog is of lake {recorded}, the warehouse {settings.lake.warehouse} of lake {stored}; "
            f"correct lake.catalog or lake.warehouse, see {RELOCATION}"
        )
    return former, copied if as_copy else former


def _former_places(settings: Settings, connection: Connection) -> set[str]:
    """Return the warehouses in which the catalog, or without one the log, has tables beside this one."""
    places = set(places_elsewhere(connection, settings.lake.warehouse))
    if catalog_id(connection) is None:
        for number in logged_ids(settings)[-1:]:
            places |= set(read_logged(settings, number)["tables"].values())
    return {warehouse_of(place) for place in places if not lies_in(place, settings.lake.warehouse)}


def _is_in_warehouse(settings: Settings) -> bool:
    url = catalog_url(settings)
    return url.get_backend_name() == "sqlite" and lies_in(url.database or "", settings.lake.warehouse)


def _original(settings: Settings, places: Iterable[str], lake_id: str) -> str | None:
    """Return the place where the same lake still is."""
    for place in sorted(places):
        there = settings.model_copy(update={"lake": settings.lake.model_copy(update={"warehouse": place})})
        try:
            if warehouse_id(there) == lake_id:
                return place
        except (PermalakeError, OSError):
            continue
    return None


def _rewrite_log(settings: Settings, lake_id: str) -> None:
    for number in logged_ids(settings):
        document = read_logged(settings, number)
        tables = {table: _moved(place, settings) for table, place in document["tables"].items()}
        if (tables, lake_id) != (document["tables"], document["lake_id"]):
            write_logged(settings, {**document, "tables": tables, "lake_id": lake_id})


def _moved(place: str, settings: Settings) -> str:
    return f"{settings.lake.warehouse}{place.removeprefix(warehouse_of(place))}"


def _rewrite_catalog(settings: Settings, connection: Connection, lake_id: str, as_copy: bool) -> None:
    """Rewrite every place that the catalog records; drop what was staged and not published, heads too.

    A copy has stores of its own: what is recorded of the original's is dropped.
    """
    kept = (PUBLISHED,) if as_copy else (PUBLISHED, STORES)
    connection.execute(delete(pointers).where(pointers.c.catalog_name.not_in(kept)))
    connection.execute(delete(namespaces).where(namespaces.c.catalog_name.not_in(kept)))
    connection.execute(update(attempts).where(attempts.c.state == "open").values(state="discarded"))
    connection.execute(delete(leases))
    connection.execute(delete(heads))
    if as_copy:
        connection.execute(delete(served))
        connection.execute(delete(provisional))
    for column in _PLACES:
        _rewrite_column(connection, column, lambda place: _moved(place, settings))

    def states(text: str) -> str:
        moved = [
            {table: _moved(place, settings) for table, place in state.items()} for state in json.loads(text)
        ]
        return json.dumps(moved)

    _rewrite_column(connection, served.c.states, states)
    connection.execute(update(lake_ids).values(lake_id=lake_id))


def _rewrite_column(connection: Connection, column: Column[str], moved: Callable[[str], str]) -> None:
    keys = list(column.table.primary_key)
    changed = []
    for *key, place in connection.execute(select(*keys, column).where(column.is_not(None))):
        if (new := moved(place)) != place:
            changed.append({f"key{at}": value for at, value in enumerate(key)} | {"place": new})
    if changed:
        here = and_(*(key == bindparam(f"key{at}") for at, key in enumerate(keys)))
        connection.execute(
            update(column.table).where(here).values({column.name: bindparam("place")}), changed
        )


def _networks(connection: Connection) -> list[str]:
    return list(connection.execute(select(networks.c.network).order_by(networks.c.network)).scalars())


def _rewrite_files(settings: Settings, connection: Connection, network: str) -> RelocatedNetwork:
    warehouse = settings.lake.warehouse
    # Every past state that is recorded, however old: what is not rewritten leads to the original.
    until = replace(limits(settings.lake, moment(clock(connection))), history=_EVER)
    # A store may have rows of states that the network's head was in.
    reached = sorted(roots(connection, network, until), key=_table_of)
    by_table = groupby(reached, _table_of)
    tables = [(MovedTable(warehouse, *table), list(of_table)) for table, of_table in by_table]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        done = list(pool.map(lambda pair: pair[0].rewrite(pair[1]), tables))
    folders = {network, *(namespace for namespace, _ in map(_table_of, reached))}
    listed = [file for folder in sorted(folders) for file in listing(f"{warehouse}/{folder}")]
    present = {file.path: file.size for file in listed}
    sizes = {path: size for table in done for path, size in table.sizes.items()}
    return RelocatedNetwork(
        network,
        len(done),
        sum(table.rewritten for table in done),
        len(present),
        _problems(network, needed(reached), present, sizes),
    )


def _table_of(root: Root) -> tuple[str, str]:
    return table_of(root.location)


def _problems(
    network: str, keep: Needed, present: Mapping[str, int], sizes: Mapping[str, int]
) -> dict[str, str]:
    """Return what is wrong with needed files, read anew: by path, or by table where one cannot be read."""
    problems = {f"{network}.{table}": why for table, why in sorted(keep.lacking.items())}
    for path in sorted(path for paths in keep.paths.values() for path in paths):
        if path not in present:
            problems[path] = "is missing"
        elif (size := sizes.get(path, present[path])) != present[path]:
            problems[path] = f"has {present[path]:,} of {size:,} bytes"
    return problems
