"""The catalog database: transactions that read or write, and the errors that keep it from answering."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool

from permalake.errors import CatalogUnavailableError, mishap_of
from permalake.lake.migrations import migrate, pending
from permalake.lake.state import MIGRATIONS

BUSY_SECONDS = 60.0
"""Seconds that a command waits for a locked catalog."""
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Database:
    """The catalog database. ``read`` sees one consistent state, ``write`` is alone while it lasts.

    ``wait``: seconds to wait for another process that has locked it. Opening, reading and writing raise
    :class:`CatalogUnavailableError` when it stays locked, is damaged, or does not answer.
    """

    def __init__(self, uri: str | URL, wait: float = BUSY_SECONDS) -> None:
        self.engine = _engine(uri, wait)
        is_sqlite = self.engine.dialect.name == "sqlite"  # whose transactions see one state as they are
        self._reading = (
            self.engine if is_sqlite else self.engine.execution_options(isolation_level="REPEATABLE READ")
        )
        self._wait = wait
        # Only whoever finds steps to take asks for the write lock: opening must not wait for writers.
        with self.read() as connection:
            due = pending(connection, MIGRATIONS)
        if due:
            with self.write() as connection:
                migrate(connection, MIGRATIONS)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads: all its statements see one state of the database."""
        with self._named_errors(), self._reading.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that may write: all of it happens, or nothing."""
        writing = self.engine.execution_options(permalake_writes=True)
        with self._named_errors(), writing.begin() as connection:
            yield connection

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Say what keeps the database from answering."""
        try:
            yield
        except DBAPIError as error:
            if reason := self._reason(error):
                raise CatalogUnavailableError(reason) from None
            raise

    def _reason(self, error: DBAPIError) -> str | None:
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _LOCKED:
            return (
                f"lake.catalog: another process has kept {self.engine.url.database} locked for "
                f"{self._wait:g} s; wait until it is done, or end it (`fuser` names it)"
            )
        reason = " ".join(str(error.orig).split())
        if advice := mishap_of(reason):
            return f"lake.catalog: {advice}"
        if not isinstance(error, OperationalError):
            return None
        return f"lake.catalog: the database does not answer: {reason}; are address and login right?"

    def make_sure(self, work: Callable[[Connection], None]) -> None:
        """Run ``work``, which creates what is missing, in a transaction.

        It runs once more if another process created the same at the same moment (SQLite has them wait,
        PostgreSQL fails the later one).
        """
        try:
            with self.write() as connection:
                work(connection)
        except (IntegrityError, ProgrammingError):
            with self.write() as connection:
                work(connection)


def _engine(uri: str | URL, wait: float) -> Engine:
    url = make_url(uri)
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    # No pool: a connection must not be shared with forked workers.
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": wait})

    @event.listens_for(engine, "connect")
    def _own_transactions(connection, _record) -> None:  # type: ignore[no-untyped-def]
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A deferred transaction that turns from reading to writing fails at once when another one wrote
        # meanwhile, whatever the busy time-out; taking the write lock first makes it wait instead.
        writes = connection.get_execution_options().get("permalake_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
