"""DuckDB with extensions from packages: runs statements, gives the rows of the last; JSON on both sides."""

import importlib.util
import json
import sys
from pathlib import Path

import duckdb


def load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    (file,) = Path(found.submodule_search_locations[0]).rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{file}'")


asked = json.load(sys.stdin)
with duckdb.connect() as connection:
    for extension in asked["extensions"]:
        load(connection, extension)
    try:
        for statement in asked["statements"]:
            result = connection.execute(statement)
        told = {"columns": [one[0] for one in result.description], "rows": result.fetchall()}
    except duckdb.Error as error:
        told = {"error": str(error)}
json.dump(told, sys.stdout, default=str)
