"""Connections to a DuckDB in this process's memory."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import duckdb

from permalake.contracts.sql_text import literal

_SETTINGS = (
    # Global, so that cursors have them too.
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL python_enable_replacements = false",
    # Where Python runs no script (a process that multiprocessing started), DuckDB takes itself for a person's
    # and draws its progress over the standard output after two seconds. Cursors never draw.
    "SET enable_progress_bar = false",
)


def connect() -> duckdb.DuckDBPyConnection:
    """Open an empty database: in UTC, blind to Python's variables, and nothing is drawn.

    What exceeds the memory goes into a folder of the connection's own among the temporary ones; closing the
    connection removes it.
    """
    connection = duckdb.connect(":memory:")  # noqa: TID251
    for setting in _SETTINGS:
        connection.execute(setting)
    folder = Path(gettempdir()) / f"permalake-{uuid4().hex}"
    connection.execute(f"SET temp_directory = {literal(str(folder))}")
    return connection
