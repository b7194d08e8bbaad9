"""Rate limit and circuit breaker of a service, shared by all threads of a process."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from permalake.net.shared_pace import CrossProcessRateLimiter

_MARGIN = 1.05
"""Requests are spaced a little wider than the rate asks for: even departures arrive with jitter, and the
service counts arrivals."""


class Rate:
    """A token bucket of one token: at most ``per_second`` requests a second, evenly spaced, for all threads.

    A request may hold several calls, at most :attr:`largest`. The time of arrival is unknown, except that it
    lies before the answer. So a call counts from its departure until a second after its answer, and no second
    sees more than ``largest`` arrivals. ``pace`` spaces them from those of other processes. With ``shares``
    the bucket is that of one of so many processes, and the pace that of all of them.
    """

    def __init__(
        self,
        per_second: float,
        pace: CrossProcessRateLimiter | None = None,
        shares: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pace = pace
        self.largest = max(1, int(per_second / shares))
        self._step_of_all = _MARGIN / per_second
        self._step = self._step_of_all * shares
        self._clock = clock
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._counted = 0
        self._over: deque[tuple[float, int]] = deque()
        self._free_at = 0.0
        self._held_until = 0.0

    @contextmanager
    def request(self, calls: int = 1) -> Iterator[None]:
        """Wait until a request of so many calls may leave; send it inside the block."""
        with self._turn:  # kept while waiting, so that a late riser does not come close to the next one
            self._wait(calls)
            if self._pace:
                self._pace.wait(self._step_of_all * calls)
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
        """Return when there is room for these calls; infinity while that depends on an answer."""
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
        """Let no request leave before ``seconds`` have passed, in any process of the machine."""
        with self._changed:
            self._held_until = max(self._held_until, self._clock() + seconds)
        if self._pace:
            self._pace.hold(seconds)


class Breaker:
    """A circuit breaker: opens after ``limit`` failures in a row, tries again after ``rest`` seconds."""

    def __init__(self, limit: int, rest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._rest = rest
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_from = 0.0
        self._reason = ""
        self._for_good = ""

    def refusal(self) -> str | None:
        """Return why no request may be sent now; None when one may."""
        with self._lock:
            if self._for_good:
                return self._for_good
            if self._failures < self._limit:
                return None
            if self._clock() >= self._closed_from:
                self._closed_from = self._clock() + self._rest  # this one tries, the others wait for it
                return None
            return self._reason

    @property
    def is_open(self) -> bool:
        """Whether requests are refused now."""
        with self._lock:
            resting = self._failures >= self._limit and self._clock() < self._closed_from
            return bool(self._for_good) or resting

    def succeeded(self) -> None:
        """Record that the service answered."""
        with self._lock:
            self._failures = 0

    def failed(self, reason: str) -> None:
        """Record that a request failed."""
        with self._lock:
            self._failures += 1
            self._reason = reason
            if self._failures >= self._limit:
                self._closed_from = self._clock() + self._rest

    def open(self, reason: str) -> None:
        """Send no more requests, whatever becomes of those on their way: another one cannot succeed."""
        with self._lock:
            self._for_good = reason
