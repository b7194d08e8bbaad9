"""The id of a lake and its place: no command works on a catalog and a warehouse that do not belong together.

The catalog keeps the id in a table, the warehouse in ``_lake.json``. Tables record where their files lie; in
a lake that was copied or moved that is the old place, which must be neither read nor written.
"""

from __future__ import annotations

import uuid

from sqlalchemy import Connection, func, insert, select

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.advisory_locks import AdvisoryLock
from permalake.lake.database import BUSY_SECONDS, Database
from permalake.lake.fixed_settings import check_fixed_settings
from permalake.lake.state import lake_ids, now, pointers
from permalake.lake.warehouse_files import RUNBOOK, entries, read_json, write_json
from permalake.net.object_storage import lies_in
from permalake.spark.catalog_database import catalog_url

RELOCATION = "docs/runbooks/relocate.md"
_FILE = "_lake.json"


def open_database(settings: Settings, wait: float = BUSY_SECONDS) -> Database:
    """Open the catalog of the configured lake. A new lake gets an id.

    ``wait``: see :class:`Database`.

    Raises:
        CatalogUnavailableError: if the catalog is locked or does not answer.
        PermalakeError: if catalog and warehouse are not of one lake, or one of the two is lost, or tables lie
            outside the warehouse, or a setting differs from what days were built with.
    """
    database = Database(catalog_url(settings), wait)
    stored = warehouse_id(settings)
    with database.read() as connection:
        recorded = catalog_id(connection)
    if recorded is None or recorded != stored:
        with database.write() as connection:
            AdvisoryLock.IDENTITY.take(connection)
            _settle(settings, connection)
    with database.read() as connection:
        check_places(connection, settings.lake.warehouse)
        check_fixed_settings(connection, settings)
    return database


def warehouse_id(settings: Settings) -> str | None:
    """Return the id that the warehouse holds; None if it has none."""
    document = read_json(f"{settings.lake.warehouse}/{_FILE}")
    return str(document["lake_id"]) if document and "lake_id" in document else None


def catalog_id(connection: Connection) -> str | None:
    """Return the id that the catalog holds; None if it has none."""
    return connection.execute(select(lake_ids.c.lake_id)).scalar()


def check_places(connection: Connection, warehouse: str) -> None:
    """Check that every table of the catalog lies in the warehouse.

    Raises:
        PermalakeError: if one does not: the lake was copied or moved.
    """
    if place := next(iter(places_elsewhere(connection, warehouse)), None):
        raise PermalakeError(
            f"the lake was copied or moved: its tables lie in {warehouse_of(place)}, lake.warehouse is "
            f"{warehouse}; correct lake.warehouse, or run `permalake relocate`, see {RELOCATION}"
        )


def places_elsewhere(connection: Connection, warehouse: str) -> list[str]:
    """Return metadata files of the catalog's tables that lie outside the warehouse."""
    place, inside = pointers.c.metadata_location, f"{warehouse}/"
    query = select(place).where(func.substr(place, 1, len(inside)) != inside)
    return [location for location in connection.execute(query).scalars() if not lies_in(location, warehouse)]


def warehouse_of(metadata_location: str) -> str:
    """Return the warehouse of a table's metadata file, ``WAREHOUSE/NETWORK/TABLE/metadata/FILE``."""
    return metadata_location.rsplit("/", 4)[0]


def mark_warehouse(settings: Settings, lake_id: str) -> None:
    """Write the id into the warehouse."""
    write_json(f"{settings.lake.warehouse}/{_FILE}", {"lake_id": lake_id, "created_at": now()})


def set_catalog_id(connection: Connection, lake_id: str) -> None:
    """Put the id into a catalog that has none."""
    connection.execute(insert(lake_ids).values(lake_id=lake_id, created_at=now()))


def _settle(settings: Settings, connection: Connection) -> None:
    """Give catalog and warehouse one id where they belong together; the caller is alone."""
    warehouse = settings.lake.warehouse
    recorded, stored = catalog_id(connection), warehouse_id(settings)
    if recorded is not None and stored is None:
        raise PermalakeError(
            f"the warehouse {warehouse} does not hold the lake {recorded} of the catalog: it is lost, not "
            f"mounted, or lake.warehouse is wrong; see {RUNBOOK}"
        )
    if recorded is not None and recorded != stored:
        raise PermalakeError(
            f"the catalog is of lake {recorded}, the warehouse {warehouse} of lake {stored}; correct "
            f"lake.catalog or lake.warehouse, see {RUNBOOK}"
        )
    if recorded is not None:
        return
    _check_new(connection, warehouse)
    if stored is None:
        stored = str(uuid.uuid4())
        mark_warehouse(settings, stored)
    set_catalog_id(connection, stored)


def _check_new(connection: Connection, warehouse: str) -> None:
    """Check that neither a catalog without id nor its warehouse holds tables."""
    check_places(connection, warehouse)
    if connection.execute(select(pointers.c.table_name)).first():
        raise PermalakeError(
            f"the catalog holds tables but no lake id: a part of it is lost; restore it from its backup, or "
            f"`permalake restore` builds it again in an empty database, see {RUNBOOK}"
        )
    if table := _first_table(warehouse):
        raise PermalakeError(
            f"the catalog is empty, but the warehouse {warehouse} holds tables ({table}): the catalog "
            f"is lost or lake.catalog is wrong; `permalake restore` builds it again, see {RUNBOOK}"
        )


def _first_table(warehouse: str) -> str | None:
    """Return a table that lies in the warehouse, as NETWORK/TABLE."""
    networks = [name for name, is_folder in entries(warehouse) if is_folder and name[0].isalpha()]
    for network in networks:
        for table, is_folder in entries(f"{warehouse}/{network}"):
            if is_folder and ("metadata", True) in entries(f"{warehouse}/{network}/{table}"):
                return f"{network}/{table}"
    return None
