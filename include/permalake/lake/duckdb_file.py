"""A DuckDB database file of views over the published Parquet files, for tools that speak DuckDB."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import duckdb

from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces
from permalake.lake.catalog import open_table
from permalake.lake.counts import files
from permalake.lake.published import LakeState

# The oldest format that DuckDB 1.x reads: tools bring a DuckDB of their own.
_STORAGE_VERSION = "v1.0.0"
_TYPES = {"string": "VARCHAR", "binary": "BLOB", "long": "BIGINT", "int": "INTEGER", "list<int>": "INTEGER[]"}


def write_duckdb_file(published: LakeState, namespaces: Namespaces, target: Path) -> int:
    """Write the file, replacing an earlier one in one move; return the number of tables and views.

    Each table is a view ``NETWORK.table`` over its data files as ``published`` has them: the file tells of
    this state until it is written again, and for as long as maintenance keeps the state's files.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    count = 0
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {_text(str(draft))} AS lake (STORAGE_VERSION '{_STORAGE_VERSION}')")
        connection.execute("USE lake")
        for network in sorted({network for network, _ in published}):
            connection.execute(f"CREATE SCHEMA {_name(network)}")
            count += _views(connection, network, published, namespaces)
        connection.execute("USE memory")
        connection.execute("DETACH lake")
    draft.replace(target)
    return count


def _views(
    connection: duckdb.DuckDBPyConnection, network: str, published: LakeState, namespaces: Namespaces
) -> int:
    schema, contracts = _name(network), namespaces(network)
    tables = [name for name in contracts.tables if (network, name) in published]
    for name in tables:
        body = _body(contracts.tables[name], published[network, name])
        connection.execute(f"CREATE VIEW {schema}.{_name(name)} AS {body}")
    views = [view for view in contracts.views if set(view.tables) <= set(tables)]
    for view in views:
        sql = view.sql.format(network=schema).replace("as_of", f"DATE '{date.max}'")
        connection.execute(f"CREATE VIEW {schema}.{_name(view.name)} AS {sql}")
    return len(tables) + len(views)


def _body(contract: Table, location: str | None) -> str:
    """Return the SELECT of a table; columns that older files lack are null."""
    paths = sorted(file.file_path for file in files(open_table(location))) if location else []
    if not paths:
        nulls = (f"CAST(NULL AS {_type(column.type)}) AS {_name(column.name)}" for column in contract.columns)
        return f"SELECT {', '.join(nulls)} WHERE false"
    return f"SELECT * FROM read_parquet([{_listed(paths)}], union_by_name = true)"  # noqa: S608


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(_text(path.removeprefix("file://")) for path in paths)


def _type(iceberg: str) -> str:
    return _TYPES.get(iceberg, iceberg.upper())


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
