"""A bounded pool of DuckDB connections that can read the lake's files, and nothing else."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from itertools import count

import duckdb

from permalake.contracts.sql_text import literal
from permalake.engine.connection import connect
from permalake.errors import PermalakeError
from permalake.lake.serving.watchdog import QueryWatchdog
from permalake.net import object_storage

_SETTINGS = (
    "SET parquet_metadata_cache = true",
    "SET preserve_insertion_order = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET max_temp_directory_size = '20GiB'",
    "SET memory_limit = '1GiB'",
)
_LOCKS = ("SET enable_external_access = false", "SET lock_configuration = true")


_Turn = tuple[float, int, Future[duckdb.DuckDBPyConnection]]
"""A deadline, a number in order, and who gets the connection."""


class QueryTimeoutError(PermalakeError):
    """Raised when a query takes longer than the request may."""


class PoolBusyError(PermalakeError):
    """Raised when no connection becomes free in time."""


class QueryPool:
    """``size`` connections to one DuckDB, which may read files below ``warehouse`` and nothing else.

    ``threads``: of all queries together; default: one per core. ``patience``: seconds that a query waits for
    a connection, at most until its deadline.
    """

    def __init__(
        self,
        warehouse: str,
        size: int,
        threads: int | None = None,
        patience: float = float("inf"),
    ) -> None:
        self._patience = patience
        self._database = connect()
        self._spill = tempfile.TemporaryDirectory(prefix="permalake-serve-")
        for setting in _SETTINGS:
            self._database.execute(setting)
        self._database.execute(f"SET threads = {threads or os.cpu_count() or 2}")
        self._database.execute(f"SET temp_directory = {literal(self._spill.name)}")
        if not object_storage.is_object_store(warehouse):
            self._database.execute(f"SET allowed_directories = [{literal(warehouse)}]")
        for lock in _LOCKS:
            self._database.execute(lock)
        self._free = [self._database.cursor() for _ in range(size)]
        self._queue: list[_Turn] = []
        self._number = count()
        self._lock = threading.Lock()
        self._watchdog = QueryWatchdog()

    def close(self) -> None:
        """Close the connections and remove the folder for temporary files."""
        self._watchdog.end()
        self._database.close()
        self._spill.cleanup()

    @contextmanager
    def connection(
        self, deadline: float, expired: threading.Event | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Lend a connection; what runs on it is cancelled at ``deadline`` (:func:`time.monotonic`).

        ``expired``: given to :meth:`expire`, it cancels at once.

        Raises:
            PoolBusyError: if none is free in time.
            QueryTimeoutError: if the work is cancelled, or would begin after the deadline.
        """
        if time.monotonic() >= deadline:
            raise QueryTimeoutError("the query was not begun: the request has taken too long")
        connection = self._take(deadline)
        expired = expired or threading.Event()
        self._watchdog.watch(connection, deadline, expired)
        try:
            yield connection
        except duckdb.InterruptException as error:
            raise QueryTimeoutError("the query was cancelled: it took too long") from error
        except duckdb.Error as error:
            if expired.is_set():
                raise QueryTimeoutError("the query was cancelled: it took too long") from error
            raise
        finally:
            self._watchdog.leave(connection)
            self._give(connection)

    def expire(self, expired: threading.Event) -> None:
        """Cancel what runs on the connections that were lent with this event."""
        self._watchdog.expire(expired)

    @property
    def waiting(self) -> int:
        """Number of callers that wait for a connection."""
        return len(self._queue)

    def _take(self, deadline: float) -> duckdb.DuckDBPyConnection:
        """Return a connection in turn: a query of a later request must not pass those that wait.

        Requests that began earlier have earlier deadlines. A request of many queries waits once.
        """
        turn: Future[duckdb.DuckDBPyConnection] = Future()
        waiting = (deadline, next(self._number), turn)
        with self._lock:
            if self._free:
                return self._free.pop()
            heappush(self._queue, waiting)
        try:
            return turn.result(max(min(deadline - time.monotonic(), self._patience), 0))
        except TimeoutError:
            with self._lock:
                if turn.done():  # given meanwhile
                    return turn.result()
                self._queue.remove(waiting)
                heapify(self._queue)
            raise PoolBusyError("the server is busy; try again") from None

    def _give(self, connection: duckdb.DuckDBPyConnection) -> None:
        with self._lock:
            if self._queue:
                heappop(self._queue)[-1].set_result(connection)
            else:
                self._free.append(connection)
