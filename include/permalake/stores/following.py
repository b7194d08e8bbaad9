"""Stores that follow a live head: one that is slow, or fails, never stops the head."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from permalake.errors import PermalakeError, line_of

PAUSE_SECONDS = 10.0
"""A store that failed is left alone for so long."""
TURN_SECONDS = 1.5
"""Seconds between two batches of a store that lacks more. Whoever waits for its lease looks once a second."""
_LOG = logging.getLogger("permalake")
_Result = TypeVar("_Result")


class StoreAttempts:
    """The attempts to write a network's head into a store.

    ``alert`` is called with a reason when an outage has lasted ``limit`` seconds, once for each outage.
    """

    def __init__(self, network: str, store: str, alert: Callable[[str], None], limit: float) -> None:
        self._network, self._store, self._alert, self._limit = network, store, alert, limit
        self._failing_since: float | None = None
        self._is_alerted = False
        self._pause_until = 0.0

    def attempt(self, write: Callable[[], _Result]) -> _Result | None:
        """Return what ``write`` returns; None where it failed, or is not called so shortly after it failed.

        The log has a line when an outage begins and one when it ends.
        """
        if time.monotonic() < self._pause_until:
            return None
        try:
            result = write()
        except Exception as error:  # noqa: BLE001 - the head goes on, whatever a store or its driver raises
            self._fail(str(error) if isinstance(error, PermalakeError) else line_of(error))
            return None
        if self._failing_since is not None:
            _LOG.info("live %s: %s takes the head again", self._network, self._store)
        self._failing_since, self._is_alerted = None, False
        return result

    def _fail(self, reason: str) -> None:
        now = time.monotonic()
        self._pause_until = now + PAUSE_SECONDS
        if self._failing_since is None:
            self._failing_since = now
            _LOG.warning("live %s: %s lacks a part of the head: %s", self._network, self._store, reason)
        lasted = now - self._failing_since
        if lasted >= self._limit and not self._is_alerted:
            self._is_alerted = True
            self._alert(f"{self._store} has lacked a part of the live head for {lasted:.0f} s: {reason}")


class Follower:
    """Writes a head into a store, in a thread beside the one that adds to the head.

    ``write`` writes a batch of what the store lacks, and returns how much is left; a store that fails is no
    reason for it to raise.
    """

    def __init__(self, write: Callable[[], int]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1)
        self._running: Future[None] | None = None
        self._closed = threading.Event()

    def wake(self) -> None:
        """Let it write what the head has now, unless it is writing; return at once."""
        if self._running is not None:
            if not self._running.done():
                return
            self._running.result()  # raises what nobody foresaw
        self._running = self._thread.submit(self._write_all)

    def finish(self) -> None:
        """Return once the store has what the head has, or has failed."""
        self._thread.submit(self._write_all).result()

    def close(self) -> None:
        """Return once the batch that is being written is."""
        self._closed.set()
        self._thread.shutdown()

    def _write_all(self) -> None:
        while not self._closed.is_set() and self._write():
            self._closed.wait(TURN_SECONDS)
