"""Connections to a DuckDB in this process's memory."""

from __future__ import annotations

import duckdb

_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    # Where Python runs no script (a process that multiprocessing started), DuckDB takes itself for a person's
    # and draws its progress over the standard output after two seconds.
    "SET enable_progress_bar = false",
)


def connect() -> duckdb.DuckDBPyConnection:
    """Open an empty database: in UTC, blind to Python's variables, and nothing is drawn."""
    connection = duckdb.connect(":memory:")  # noqa: TID251
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection
