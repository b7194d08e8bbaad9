"""How a store follows a live head: a store that fails is left alone for a while and never stops the head."""

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
    """The attempts to write a network's head into a store."""

    def __init__(self, network: str, store: str) -> None:
        self._network, self._store = network, store
        self._is_failing = False
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
            self._pause_until = time.monotonic() + PAUSE_SECONDS
            if not self._is_failing:
                reason = str(error) if isinstance(error, PermalakeError) else line_of(error)
                _LOG.warning("live %s: %s lacks a part of the head: %s", self._network, self._store, reason)
            self._is_failing = True
            return None
        if self._is_failing:
            _LOG.info("live %s: %s takes the head again", self._network, self._store)
        self._is_failing = False
        return result
