"""Locks with which Airflow's processes on one machine wait for each other at their sqlite file."""

from __future__ import annotations

import asyncio
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


class OneWriter:
    """ASGI middleware: requests that may write are served one after the other.

    Airflow notes what a user does from its event loop, and there waits for sqlite's write lock. Whoever holds
    the lock may be a request that commits with that loop's next turn: both would wait until time is up.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
        else:
            async with self._turn:
                await self._app(scope, receive, send)


def middlewares() -> list[dict[str, Any]]:
    """Return what a plugin adds to Airflow's server: nothing but on SQLite."""
    from airflow.configuration import conf

    on_sqlite = str(conf.get("database", "sql_alchemy_conn")).startswith("sqlite")
    return [{"middleware": OneWriter, "name": "one writer"}] if on_sqlite else []
