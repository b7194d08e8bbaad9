"""Stores that follow a live head: one that fails is left alone for a while and never stops the head."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from permalake.errors import PermalakeError, line_of

PAUSE_SECONDS = 10.0
"""Each attempt keeps the head waiting."""
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
