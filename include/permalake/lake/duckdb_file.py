"""A DuckDB database file of views over the published Parquet files, for tools that speak DuckDB."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb

from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces
from permalake.contracts.schema import duckdb_type
from permalake.contracts.sql_text import identifier, literal, no_rows, parquet_by_id
from permalake.engine.connection import connect
from permalake.lake.catalog import open_table
from permalake.lake.counts import files
from permalake.lake.published import LakeState

# The oldest format that DuckDB 1.x reads: tools bring a DuckDB of their own.
_STORAGE_VERSION = "v1.0.0"


def write_duckdb_file(published: LakeState, namespaces: Namespaces, target: Path) -> int:
    """Write the file, replacing an earlier one in one move; return the number of tables and views.

    Each table is a view ``NETWORK.table`` over its data files as ``published`` has them: the file tells of
    this state until it is written again, and for as long as maintenance keeps the state's files.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    count = 0
    with connect() as connection:
        connection.execute(f"ATTACH {literal(str(draft))} AS lake (STORAGE_VERSION '{_STORAGE_VERSION}')")
        connection.execute("USE lake")
        for network in sorted({network for network, _ in published}):
            connection.execute(f"CREATE SCHEMA {identifier(network)}")
            count += _views(connection, network, published, namespaces)
        connection.execute("USE memory")
        connection.execute("DETACH lake")
    draft.replace(target)
    return count


def _views(
    connection: duckdb.DuckDBPyConnection, network: str, published: LakeState, namespaces: Namespaces
) -> int:
    schema, contracts = identifier(network), namespaces(network)
    tables = [name for name in contracts.tables if (network, name) in published]
    for name in tables:
        body = _body(contracts.tables[name], published[network, name])
        connection.execute(f"CREATE VIEW {schema}.{identifier(name)} AS {body}")
    views = [view for view in contracts.views if set(view.tables) <= set(tables)]
    for view in views:
        connection.execute(f"CREATE VIEW {schema}.{identifier(view.name)} AS {view.body(schema)}")
    return len(tables) + len(views)


def _body(contract: Table, location: str | None) -> str:
    """Return the SELECT of a table; columns that older files lack are null."""
    kinds = {column.name: duckdb_type(column.type) for column in contract.columns}
    table = open_table(location) if location else None
    paths = sorted(file.file_path.removeprefix("file://") for file in files(table)) if table else []
    if not table or not paths:
        return no_rows(kinds)
    listed = ", ".join(map(literal, paths))
    ids = {field.name: field.field_id for field in table.schema().fields}
    return f"FROM {parquet_by_id(f'[{listed}]', kinds, ids)}"
