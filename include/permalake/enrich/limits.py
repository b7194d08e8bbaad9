"""How often a service is asked, and when it is left alone: a rate and a circuit breaker for all threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_MARGIN = 1.05
"""Requests are spaced a little wider than the rate asks for: what leaves here in even steps arrives with
jitter, and the service counts arrivals."""


class Rate:
    """A token bucket that holds one token: at most ``per_second`` requests a second, in even steps and
    without bursts, however many threads ask."""

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._step = _MARGIN / per_second
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._held_until = 0.0

    def take(self) -> None:
        """Wait for a token. The lock is held while waiting, so that a late riser does not come close to the
        next one."""
        with self._lock:
            while (pause := max(self._free_at, self._held_until) - self._clock()) > 0:
                self._sleep(pause)
            self._free_at = self._clock() + self._step

    def hold(self, seconds: float) -> None:
        """No token for anyone before ``seconds`` have passed: the service asked for it."""
        self._held_until = max(self._held_until, self._clock() + seconds)


class Breaker:
    """Opens after ``limit`` failures in a row; after ``rest`` seconds one request may try again."""

    def __init__(self, limit: int, rest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._rest = rest
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_from = 0.0
        self._reason = ""

    def refusal(self) -> str | None:
        """Why the service is not asked now; None when it may be."""
        with self._lock:
            if self._failures < self._limit:
                return None
            if self._clock() >= self._closed_from:
                self._closed_from = self._clock() + self._rest  # this one tries, the others wait for it
                return None
            return self._reason

    def succeeded(self) -> None:
        """The service answered."""
        with self._lock:
            self._failures = 0

    def failed(self, reason: str) -> None:
        """A request came to nothing."""
        with self._lock:
            self._failures += 1
            self._reason = reason
            if self._failures >= self._limit:
                self._closed_from = self._clock() + self._rest

    def open(self, reason: str) -> None:
        """Leave the service alone for good: asking again cannot help."""
        with self._lock:
            self._failures = self._limit
            self._reason = reason
            self._closed_from = float("inf")
