"""A bounded pool of DuckDB connections that can read the lake's files, and nothing else."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue

import duckdb

from permalake.errors import PermalakeError
from permalake.lake.serving.watchdog import QueryWatchdog
from permalake.net import object_storage

_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET parquet_metadata_cache = true",
    "SET preserve_insertion_order = false",
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET max_temp_directory_size = '20GiB'",
)
_LOCKS = ("SET enable_external_access = false", "SET lock_configuration = true")


class QueryTimeoutError(PermalakeError):
    """Raised when a query, or its turn in the pool, takes longer than the request may."""


class QueryPool:
    """``size`` connections to one DuckDB, which may read files below ``warehouse`` and nothing else.

    ``waiting`` is the number of callers that wait for a connection.
    """

    def __init__(self, warehouse: str, size: int, memory: str = "1GiB") -> None:
        self._database = duckdb.connect(":memory:")
        self._spill = tempfile.TemporaryDirectory(prefix="permalake-serve-")
        for setting in _SETTINGS:
            self._database.execute(setting)
        self._database.execute(f"SET threads = {os.cpu_count() or 2}")
        self._database.execute(f"SET memory_limit = '{memory}'")
        self._database.execute(f"SET temp_directory = {_text(self._spill.name)}")
        if not object_storage.is_object_store(warehouse):
            self._database.execute(f"SET allowed_directories = [{_text(warehouse)}]")
        for lock in _LOCKS:
            self._database.execute(lock)
        self._free: LifoQueue[duckdb.DuckDBPyConnection] = LifoQueue()
        for _ in range(size):
            self._free.put(self._database.cursor())
        self._watchdog = QueryWatchdog()
        self.waiting = 0
        self._count = threading.Lock()

    def close(self) -> None:
        """Close the connections and remove the folder for temporary files."""
        self._watchdog.end()
        self._database.close()
        self._spill.cleanup()

    @contextmanager
    def connection(self, deadline: float) -> Iterator[duckdb.DuckDBPyConnection]:
        """Lend a connection; what runs on it is cancelled at ``deadline`` (:func:`time.monotonic`).

        Raises:
            QueryTimeoutError: if none is free in time, or the work is cancelled.
        """
        connection = self._take(deadline)
        expired = self._watchdog.watch(connection, deadline)
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
            self._free.put(connection)

    def _take(self, deadline: float) -> duckdb.DuckDBPyConnection:
        with contextlib.suppress(Empty):
            return self._free.get_nowait()
        with self._counted():
            try:
                return self._free.get(timeout=max(deadline - time.monotonic(), 0))
            except Empty:
                raise QueryTimeoutError("no connection to the lake became free in time") from None

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._count:
            self.waiting += 1
        try:
            yield
        finally:
            with self._count:
                self.waiting -= 1


def _text(value: str) -> str:
    """Return a value as a literal; settings take no parameters."""
    quoted = value.replace("'", "''")
    return f"'{quoted}'"
