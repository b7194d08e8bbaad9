"""How often a service is asked, and when it is left alone: a rate and a circuit breaker for all threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_MARGIN = 1.05
"""Requests are spaced a little wider than the rate asks for: what leaves here in even steps arrives with
jitter, and the service counts arrivals."""


class Rate:
    """A token bucket that holds one token: at most ``per_second`` requests a second, in even steps and
    without bursts, however many threads ask.

    A request may hold several calls, at most :attr:`largest`: within any second no more calls go out either.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.largest = max(1, int(per_second))
        self._step = _MARGIN / per_second
        self._recent: deque[tuple[float, int]] = deque()
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._held_until = 0.0

    def take(self, calls: int = 1) -> None:
        """Wait until a request of so many calls may go out. The lock is held while waiting, so that a late
        riser does not come close to the next one."""
        with self._lock:
            while (pause := self._free_from(calls) - self._clock()) > 0:
                self._sleep(pause)
            now = self._clock()
            self._free_at = now + self._step
            self._recent.append((now, calls))

    def _free_from(self, calls: int) -> float:
        """When the calls of the last second leave room for these."""
        now = self._clock()
        while self._recent and self._recent[0][0] + _MARGIN <= now:
            self._recent.popleft()
        free = max(self._free_at, self._held_until)
        room = self.largest - sum(count for _, count in self._recent)
        for moment, count in self._recent:
            if room >= calls:
                break
            free = max(free, moment + _MARGIN)
            room += count
        return free

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
