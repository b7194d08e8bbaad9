"""One thread that cancels queries whose time is up: a timer for each would cost more than a lookup."""

from __future__ import annotations

import threading
import time

import duckdb

_AGAIN = 0.1
"""Seconds between interrupts: one that comes before its query begins has no effect."""


class QueryWatchdog:
    """Interrupts connections at their deadlines, until they leave."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[float, duckdb.DuckDBPyConnection, threading.Event]] = {}
        self._changed = threading.Condition()
        self._wakes = float("inf")
        self._ended = False
        threading.Thread(target=self._run, name="query watchdog", daemon=True).start()

    def watch(self, connection: duckdb.DuckDBPyConnection, deadline: float, expired: threading.Event) -> None:
        """Interrupt a connection from ``deadline`` (:func:`time.monotonic`) on, or once ``expired`` is set.

        ``expired`` is set at the deadline.
        """
        with self._changed:
            self._watched[id(connection)] = deadline, connection, expired
            if deadline < self._wakes or expired.is_set():
                self._changed.notify()

    def expire(self, expired: threading.Event) -> None:
        """Interrupt the connections that are watched with this event."""
        expired.set()
        with self._changed:
            self._changed.notify()

    def leave(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Interrupt a connection no more: a late interrupt must not hit its next query."""
        with self._changed:
            del self._watched[id(connection)]

    def end(self) -> None:
        """End the thread."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._ended:
                now = time.monotonic()
                for key, (deadline, connection, expired) in self._watched.items():
                    if deadline <= now or expired.is_set():
                        expired.set()
                        connection.interrupt()
                        self._watched[key] = now + _AGAIN, connection, expired
                self._wakes = min((entry[0] for entry in self._watched.values()), default=float("inf"))
                self._changed.wait(None if self._wakes == float("inf") else max(self._wakes - now, 0))
