"""The Iceberg catalog: tables as their contracts say, and the pointers under each ``catalog_name``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from itertools import pairwise

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import ListType, NestedField
from pyiceberg.utils.datetime import datetime_to_millis
from sqlalchemy import Connection, and_, delete, insert, select

from permalake.config import Settings
from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.lake.database import Database
from permalake.lake.state import PUBLISHED, namespaces, networks, pointers
from permalake.lake.warehouse_files import RUNBOOK, fault_of
from permalake.net import object_storage
from permalake.spark.catalog_database import catalog_url

# It logs a line for each table that it opens; Airflow, once imported, prints them all.
logging.getLogger("pyiceberg").setLevel(logging.WARNING)

_AT_ONCE = 8
PROPERTIES = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "zstd",
    # Rows arrive sorted and gathered by day; Iceberg need not shuffle them once more.
    "write.distribution-mode": "none",
    # Metadata files of the past are what `--as-of` reads; maintenance removes them, not a commit.
    "write.metadata.delete-after-commit.enabled": "false",
    # Manifests are merged as they gather, whoever commits: a commit's cost must not grow with history.
    "commit.manifest-merge.enabled": "true",
    "commit.retry.num-retries": "20",
}


LEAVES_WITH_LATER_DAYS = "permalake.leaves-with-later-days"
"""Property of a head's table whose rows leave with the publication of their day or of any later one."""


def file_layout(contract: Table) -> dict[str, str]:
    """Return the Iceberg properties that lay a table's files out as its contract says."""
    return {"write.parquet.row-group-size-bytes": str(contract.row_group_bytes)}


def open_catalog(settings: Settings, name: str) -> SqlCatalog:
    """PyIceberg's view of the pointers under ``name``."""
    url = catalog_url(settings)
    if url.get_backend_name() == "sqlite":
        url = url.update_query_dict({"timeout": "60"})
    return SqlCatalog(
        name,
        uri=url.render_as_string(hide_password=False),
        warehouse=settings.lake.warehouse,
        schema_version="v1",
        **object_storage.file_io(),
    )


class UnreadableTableError(PermalakeError):
    """Raised if a table's metadata file, or a manifest (``part``) that it leads to, is missing or damaged."""

    def __init__(self, location: str, error: Exception, part: str = "") -> None:
        self.location = location
        what = f"{part} of {location}" if part else location
        super().__init__(f"{what} cannot be read: {fault_of(error)}; see {RUNBOOK}")


def open_table(location: str) -> IcebergTable:
    """Open the table as one metadata file describes it, whatever the catalog says by now.

    Raises:
        UnreadableTableError: if the file is missing or damaged.
    """
    try:
        return StaticTable.from_metadata(location, object_storage.file_io())
    except Exception as error:
        raise UnreadableTableError(location, error) from error


def unreadable(tables: Mapping[str, str]) -> dict[str, UnreadableTableError]:
    """Open every table's metadata file and manifest list; ``tables`` is name -> metadata location.

    Returns:
        The tables of which one of them is missing or damaged.
    """

    def fault(location: str) -> UnreadableTableError | None:
        try:
            table = open_table(location)
            if snapshot := table.current_snapshot():
                read_manifests(table, snapshot)
        except UnreadableTableError as error:
            return error
        return None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        faults = zip(tables, pool.map(fault, tables.values()), strict=True)
        return {name: error for name, error in faults if error is not None}


def snapshots_since(table: IcebergTable, since: datetime | None) -> list[Snapshot]:
    """Return the snapshots that were current at a moment or later: those that were replaced since, too.

    A snapshot is replaced when the next one on it is written. With None: those that are current.
    """
    snapshots = table.metadata.snapshots
    current = {ref.snapshot_id for ref in table.metadata.refs.values()}
    if since is None:
        return [snapshot for snapshot in snapshots if snapshot.snapshot_id in current]
    earliest = datetime_to_millis(since)
    replaced = {snapshot.parent_snapshot_id: snapshot.timestamp_ms for snapshot in snapshots}
    return [
        snapshot
        for snapshot in snapshots
        if snapshot.snapshot_id in current
        or replaced.get(snapshot.snapshot_id, snapshot.timestamp_ms) >= earliest
    ]


def metadata_files_since(table: IcebergTable, since: datetime) -> list[str]:
    """Return the metadata files that were current at a moment or later, of this one and the last hundred."""
    earliest = datetime_to_millis(since)
    earlier = table.metadata.metadata_log
    replaced = [*(entry.timestamp_ms for entry in earlier[1:]), table.metadata.last_updated_ms]
    lately = (entry.metadata_file for entry, at in zip(earlier, replaced, strict=False) if at >= earliest)
    return [*lately, table.metadata_location]


def read_manifests(table: IcebergTable, snapshot: Snapshot) -> list[ManifestFile]:
    """Read a snapshot's manifest list.

    Raises:
        UnreadableTableError: if it is missing or damaged.
    """
    try:
        return snapshot.manifests(table.io)
    except Exception as error:
        raise UnreadableTableError(table.metadata_location, error, "the manifest list") from error


def ensure(settings: Settings, database: Database, network: str, contracts: Mapping[str, Table]) -> None:
    """Namespace and all contract tables of ``network`` exist, as their contracts have them.

    Safe when several processes do it at once.
    """
    ensure_network(database, network)
    with database.read() as connection:
        existing = locations(connection, PUBLISHED, network)
    if missing := [contract for name, contract in contracts.items() if name not in existing]:
        created = {contract.name: create_table(settings, network, contract) for contract in missing}
        database.make_sure(partial(point, of=PUBLISHED, network=network, tables=created))
    catalog: SqlCatalog | None = None
    for name, location in existing.items():
        contract = contracts.get(name)
        if contract and is_of_earlier_version(open_table(location), contract):
            catalog = catalog or open_catalog(settings, PUBLISHED)
            _take_columns(catalog, network, contract)
            _take_layout(catalog, network, contract)


def ensure_network(database: Database, network: str) -> None:
    """Create the network's row and namespace where they are missing."""
    database.make_sure(partial(_ensure_network, network=network))


def _ensure_network(connection: Connection, network: str) -> None:
    row = connection.execute(select(networks).where(networks.c.network == network)).first()
    if row is None:
        connection.execute(insert(networks).values(network=network, turn=0))
    _ensure_namespace(connection, PUBLISHED, network)


def _ensure_namespace(connection: Connection, catalog: str, network: str) -> None:
    # Spark's JDBC catalog and PyIceberg both take one property as the sign that a namespace exists.
    row = {"catalog_name": catalog, "namespace": network, "property_key": "exists"}
    existing = connection.execute(
        select(namespaces).where(and_(*(namespaces.c[key] == value for key, value in row.items())))
    ).first()
    if existing is None:
        connection.execute(insert(namespaces).values(**row, property_value="true"))


def create_table(settings: Settings, network: str, contract: Table) -> str:
    """Write the metadata file of an empty table and return its location; no pointer leads to it yet."""
    schema = _optional(contract)
    day = schema.find_field("date")
    location = f"{settings.lake.warehouse}/{network}/{contract.name}"
    metadata = new_table_metadata(
        location=location,
        schema=schema,
        partition_spec=PartitionSpec(PartitionField(day.field_id, 1000, IdentityTransform(), "date")),
        sort_order=UNSORTED_SORT_ORDER,
        properties=PROPERTIES | file_layout(contract) | _leaving(contract),
    )
    at = load_location_provider(location, PROPERTIES).new_table_metadata_file_location()
    ToOutputFile.table_metadata(metadata, load_file_io(object_storage.file_io(), at).new_output(at))
    return at


def _leaving(contract: Table) -> dict[str, str]:
    return {LEAVES_WITH_LATER_DAYS: "true"} if contract.commit == "head" else {}


def point(
    connection: Connection, *, of: str, network: str, tables: Mapping[str, str], replace: bool = False
) -> None:
    """Let new tables of the catalog ``of`` point to their metadata files; another process may be first.

    With ``replace`` they take the place of all that the namespace had.
    """
    _ensure_namespace(connection, of, network)
    if replace:
        every = (pointers.c.catalog_name == of) & (pointers.c.table_namespace == network)
        connection.execute(delete(pointers).where(every))
    present = locations(connection, of, network)
    _insert_pointers(
        connection, of, network, {name: at for name, at in tables.items() if name not in present}
    )


def _optional(contract: Table) -> Schema:
    """Return the contract's schema with every column optional.

    A null where the contract wants a value is for the audit to name, not for a writer to crash on, and Spark
    can write a plan whose nullability it loosened.
    """
    fields = []
    for field in contract.iceberg.fields:
        kind = field.field_type
        if isinstance(kind, ListType):
            kind = ListType(kind.element_id, kind.element_type, element_required=False)
        fields.append(NestedField(field.field_id, field.name, kind, required=False, doc=field.doc))
    return Schema(*fields)


def _columns(table: IcebergTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def is_of_earlier_version(table: IcebergTable, contract: Table) -> bool:
    """Return whether a table lacks columns or the file layout of its contract."""
    if _columns(table)[: len(contract.names)] != list(contract.names):
        return True
    return not file_layout(contract).items() <= table.properties.items()


def _take_layout(catalog: SqlCatalog, network: str, contract: Table) -> None:
    """Lay the files of a table of an earlier version out as its contract says, from the next one on."""
    table = catalog.load_table((network, contract.name))
    missing = dict(file_layout(contract).items() - table.properties.items())
    if missing:
        with table.transaction() as transaction:
            transaction.set_properties(missing)


def _take_columns(catalog: SqlCatalog, network: str, contract: Table) -> None:
    """Give a table of an earlier version the columns of its contract, in their order; others stay behind."""
    table = catalog.load_table((network, contract.name))
    present = _columns(table)
    with table.update_schema() as update:
        for name in contract.names:
            if name in present:
                continue
            field = _optional(contract).find_field(name)
            update.add_column(name, field.field_type, doc=field.doc)
    if _columns(table)[: len(contract.names)] == list(contract.names):
        return
    with table.update_schema() as update:
        update.move_first(contract.names[0])
        for before, name in pairwise(contract.names):
            update.move_after(name, before)


def locations(connection: Connection, catalog: str, network: str) -> dict[str, str]:
    """Metadata location of every table of ``network`` under ``catalog``."""
    rows = connection.execute(
        select(pointers.c.table_name, pointers.c.metadata_location).where(
            pointers.c.catalog_name == catalog, pointers.c.table_namespace == network
        )
    )
    return {row.table_name: row.metadata_location for row in rows}


def table_of(location: str) -> tuple[str, str]:
    """Return namespace and name of the table whose metadata file lies at a location."""
    _, namespace, table, _, _ = location.rsplit("/", 4)
    return namespace, table


def copy_pointers(connection: Connection, catalog: str, network: str, tables: dict[str, str]) -> None:
    """Make ``catalog`` hold exactly ``tables`` (name -> metadata location) of ``network``."""
    drop_pointers(connection, catalog)
    _ensure_namespace(connection, catalog, network)
    _insert_pointers(connection, catalog, network, tables)


def _insert_pointers(connection: Connection, catalog: str, network: str, tables: Mapping[str, str]) -> None:
    if tables:
        connection.execute(
            insert(pointers),
            [
                {
                    "catalog_name": catalog,
                    "table_namespace": network,
                    "table_name": name,
                    "metadata_location": location,
                    "previous_metadata_location": None,
                    "iceberg_type": "TABLE",
                }
                for name, location in sorted(tables.items())
            ],
        )


def put_pointer(connection: Connection, catalog: str, network: str, table: str, location: str) -> None:
    """Let a table of ``catalog`` point to a metadata file, whatever it pointed to."""
    _ensure_namespace(connection, catalog, network)
    here = {"catalog_name": catalog, "table_namespace": network, "table_name": table}
    same = and_(*(pointers.c[key] == value for key, value in here.items()))
    moved = connection.execute(
        pointers.update()
        .where(same)
        .values(metadata_location=location, previous_metadata_location=pointers.c.metadata_location)
    )
    if not moved.rowcount:
        connection.execute(insert(pointers).values(**here, metadata_location=location, iceberg_type="TABLE"))


def drop_pointers(connection: Connection, catalog: str) -> None:
    """Forget a private catalog; files stay."""
    if catalog == PUBLISHED:
        raise ValueError("the published catalog is not private")
    connection.execute(delete(pointers).where(pointers.c.catalog_name == catalog))
    connection.execute(delete(namespaces).where(namespaces.c.catalog_name == catalog))


def move_pointer(
    connection: Connection, catalog: str, network: str, table: str, *, old: str, new: str
) -> bool:
    """Compare and set: the pointer becomes ``new`` if it still is ``old``."""
    done = connection.execute(
        pointers.update()
        .where(
            pointers.c.catalog_name == catalog,
            pointers.c.table_namespace == network,
            pointers.c.table_name == table,
            pointers.c.metadata_location == old,
        )
        .values(metadata_location=new, previous_metadata_location=old)
    )
    return done.rowcount == 1
