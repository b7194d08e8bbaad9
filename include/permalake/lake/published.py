"""The published state: all tables' pointers in one read, now or as of a moment, and their rows as Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlalchemy import Connection, func, select

from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces
from permalake.errors import PermalakeError
from permalake.lake.database import Database
from permalake.lake.state import LIVE, PUBLISHED, networks, pointers, publication_tables, publications, stamp
from permalake.net import object_storage

if TYPE_CHECKING:
    import pyarrow.dataset as ds

TableName = tuple[str, str]
AsOf = datetime | int
"""A moment, or the number of a publication."""
LakeState = dict[TableName, str | None]
"""(network, table) -> metadata location; None where the table had no rows yet."""


def state(database: Database) -> LakeState:
    """Read every published table's pointer at once; ``as_of``: after the last publication at or before it."""
    with database.read() as connection:
        return state_in(connection)


def state_with_heads(database: Database) -> LakeState:
    """Read every published table's pointer, and those of the networks' heads, at once."""
    with database.read() as connection:
        return state_in(connection) | state_in(connection, LIVE)


def past_state(database: Database, namespaces: Namespaces, as_of: AsOf) -> LakeState:
    """Return every table's pointer as of a publication, or of the last one at or before a moment.

    Raises:
        PermalakeError: if there is no publication of that number.
    """
    with database.read() as connection:
        if not isinstance(as_of, int):
            return state_at(connection, namespaces, last_publication(connection, as_of))
        last = last_publication(connection)
        if not 0 < as_of <= last:
            raise PermalakeError(f"publication {as_of}: there is none; the last one is {last}")
        return state_at(connection, namespaces, as_of)


def check_history(database: Database, names: Iterable[TableName], as_of: AsOf) -> None:
    """Check that maintenance has kept what the tables were then.

    Raises:
        PermalakeError: if it has not.
    """
    with database.read() as connection:
        kept = dict(connection.execute(select(networks.c.network, networks.c.history_from)).tuples().all())
        for network in {network for network, _ in names}:
            first = kept.get(network)
            if first is None:
                continue
            if not is_kept(connection, network, as_of) if isinstance(as_of, int) else stamp(as_of) < first:
                raise PermalakeError(
                    f"{network}: what was published before {first[:19]}Z is forgotten "
                    "([lake] retention_days says how much is kept); ask for a later moment"
                )


def state_in(connection: Connection, catalog: str = PUBLISHED) -> LakeState:
    """Return the pointer of every table of a catalog, the published one unless named, in a transaction."""
    rows = connection.execute(
        select(pointers.c.table_namespace, pointers.c.table_name, pointers.c.metadata_location).where(
            pointers.c.catalog_name == catalog
        )
    )
    return {(row.table_namespace, row.table_name): row.metadata_location for row in rows}


def last_publication(connection: Connection, as_of: datetime | None = None) -> int:
    """Return the number of the last publication, of all or of those at or before a moment; 0: none."""
    # By number: it is what rises with every publication, whatever the clock showed.
    query = select(func.max(publications.c.id))
    if as_of is not None:
        query = query.where(publications.c.published_at <= stamp(as_of))
    return connection.execute(query).scalar() or 0


def is_kept(connection: Connection, network: str, number: int) -> bool:
    """Return whether maintenance has kept the state that a network had after a publication."""
    kept = select(networks.c.history_from).where(networks.c.network == network)
    history_from = connection.execute(kept).scalar()
    later = (publications.c.network == network) & (publications.c.id > number)
    until = connection.execute(select(func.min(publications.c.published_at)).where(later)).scalar()
    return history_from is None or until is None or until > history_from


def state_at(connection: Connection, namespaces: Namespaces, number: int) -> LakeState:
    """Return every table's pointer after the publication of that number."""
    last = (
        select(
            publication_tables.c.network,
            publication_tables.c.table_name,
            func.max(publication_tables.c.publication_id).label("publication_id"),
        )
        .where(publication_tables.c.publication_id <= number)
        .group_by(publication_tables.c.network, publication_tables.c.table_name)
        .subquery()
    )
    rows = connection.execute(
        select(publication_tables).join(
            last,
            (publication_tables.c.publication_id == last.c.publication_id)
            & (publication_tables.c.network == last.c.network)
            & (publication_tables.c.table_name == last.c.table_name),
        )
    )
    state_of: LakeState = {
        (row.network, name): None
        for row in connection.execute(select(networks.c.network))
        for name in namespaces(row.network).tables
    }
    return state_of | {(row.network, row.table_name): row.metadata_location for row in rows}


def dataset(
    contract: Table, location: str | None, first: date = date.min, last: date = date.max
) -> ds.Dataset:
    """Open one table's rows of the days from ``first`` to ``last``, in order of days.

    Columns that older files lack are null; a table without rows is empty.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    from permalake.lake.catalog import open_table
    from permalake.lake.counts import day_of, files, files_between

    if location is None:
        return object_storage.parquet_files([], contract.nullable)
    table = open_table(location)
    fields = schema_to_pyarrow(table.schema(), include_field_ids=False)
    schema = pa.schema([(field.name, field.type) for field in fields])
    if table.spec().is_unpartitioned():
        data_files = list(files(table))
    elif (first, last) == (date.min, date.max):
        data_files = sorted(files(table), key=day_of)
    else:
        data_files = sorted(files_between(location, first, last), key=day_of)
    return object_storage.parquet_files([file.file_path for file in data_files], schema)
