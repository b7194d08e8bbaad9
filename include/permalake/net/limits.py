"""How often a service is asked, and when it is left alone: a rate and a circuit breaker for all threads."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from permalake.net.shared_pace import SharedPace

_MARGIN = 1.05
"""Requests are spaced a little wider than the rate asks for: what leaves here in even steps arrives with
jitter, and the service counts arrivals."""


class Rate:
    """A token bucket that holds one token: at most ``per_second`` requests a second, in even steps and
    without bursts, however many threads ask.

    A request may hold several calls, at most :attr:`largest`. When a request arrives is not known here, only
    that it does so before its answer: a call counts from when it leaves until a second after its answer is
    in, so that no second sees more than ``largest`` arrive, however long they were on their way. ``pace``
    spaces them from those of other processes.
    """

    def __init__(
        self,
        per_second: float,
        pace: SharedPace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pace = pace
        self.largest = max(1, int(per_second))
        self._step = _MARGIN / per_second
        self._clock = clock
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._counted = 0
        self._over: deque[tuple[float, int]] = deque()
        self._free_at = 0.0
        self._held_until = 0.0

    @contextmanager
    def request(self, calls: int = 1) -> Iterator[None]:
        """Wait until a request of so many calls may go out; it does so in the block."""
        with self._turn:  # kept while waiting, so that a late riser does not come close to the next one
            self._wait(calls)
            if self._pace:
                self._pace.wait(self._step * calls)
        try:
            yield
        finally:
            with self._changed:
                self._over.append((self._clock() + _MARGIN, calls))
                self._changed.notify()

    def _wait(self, calls: int) -> None:
        with self._changed:
            while (pause := self._free_from(calls) - self._clock()) > 0:
                self._changed.wait(min(pause, threading.TIMEOUT_MAX))
            self._counted += calls
            self._free_at = self._clock() + self._step

    def _free_from(self, calls: int) -> float:
        """When there is room for these calls; infinite while that hangs on an answer."""
        while self._over and self._over[0][0] <= self._clock():
            self._counted -= self._over.popleft()[1]
        free = max(self._free_at, self._held_until)
        room = self.largest - self._counted
        for moment, count in self._over:
            if room >= calls:
                break
            free = max(free, moment)
            room += count
        return free if room >= calls else math.inf

    def hold(self, seconds: float) -> None:
        """No token for anyone before ``seconds`` have passed: the service asked for it."""
        with self._changed:
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
