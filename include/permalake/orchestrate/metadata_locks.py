"""How Airflow's processes on one machine wait for each other at the sqlite file that they share."""

from __future__ import annotations

import sqlite3
from typing import Any, Self

_SECONDS = 60


class _Cursor(sqlite3.Cursor):
    """A savepoint is set by who will write: it begins with the write lock.

    Airflow creates the runs of a backfill behind savepoints. One that begins with a read keeps the state it
    read, and sqlite refuses its first write at once, without any waiting, when somebody wrote in between.
    """

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        if sql.startswith("SAVEPOINT") and not self.connection.in_transaction:
            super().execute("BEGIN IMMEDIATE")
        return super().execute(sql, parameters)


class _Connection(sqlite3.Connection):
    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


CONNECT_ARGS: dict[str, Any] = {"timeout": _SECONDS, "factory": _Connection}
"""For Airflow's ``sql_alchemy_connect_args``."""
