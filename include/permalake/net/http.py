"""A client for web services: retries where they help, limits everywhere, no secrets in errors or logs.

An error names the service and what happened. Addresses, headers and parameters stay out of errors and logs,
because any of them may hold an API key.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, NoReturn

import httpx
import tenacity

from permalake.net.deadline import deadline, transports
from permalake.net.limits import Breaker, Rate
from permalake.net.responses import (
    ENCODINGS,
    MALFORMED,
    Body,
    Shape,
    T,
    decoded,
    document,
    document_or_none,
    media_type,
    wrong_form,
)
from permalake.net.shared_pace import CrossProcessRateLimiter

__all__ = [
    "TRANSIENT",
    "Body",
    "Probe",
    "RequestRejectedError",
    "RetryPolicy",
    "Service",
    "UnavailableError",
    "document",
]

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses that a retry may outlast."""
_BUSY = frozenset({429, 503})
_AGENT = "permalake"
# Their log lines hold whole addresses.
for _noisy in ("httpx", "httpcore"):
    logging.getLogger(_noisy).setLevel(logging.WARNING)


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of a service; times in seconds.

    ``whole`` bounds an exchange from the first byte sent to the last byte read, ``attempts`` and ``back_off``
    the retries of a request, ``failures`` the requests that may fail in a row before the service rests,
    ``largest_answer`` the decoded bytes of a response.
    """

    connect: float = 10.0
    read: float = 30.0
    whole: float = 60.0
    attempts: int = 8
    back_off: float = 0.5
    longest_pause: float = 90.0
    failures: int = 3
    rest: float = 60.0
    largest_answer: int = 32 * 2**20


@dataclass(frozen=True)
class Probe:
    """A cheap request that a healthy service answers: so a request that fails shows no dead service."""

    path: str
    json: Any = None
    """Body of a POST; None for a GET."""
    shape: Shape[Any] = bool
    """Rejects a document that no healthy service sends."""


class UnavailableError(Exception):
    """Raised when the service gave no usable answer; the message is one line.

    The cause, if there is one, is the error of the shape that rejected the last answer. ``is_busy``: the last
    answer asks for fewer requests, which tells nothing of this one. ``pause``: the seconds that it asks to
    wait, 0 if it asks for nothing.
    """

    def __init__(self, reason: str, *, is_busy: bool = False, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.is_busy = is_busy
        self.pause = pause


class RequestRejectedError(Exception):
    """Raised when the service answered with a client error (4xx).

    ``status`` is the HTTP status, ``body`` its JSON document, None when there is none.
    """

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


class _TransientError(Exception):
    """A fault that a retry may outlast; ``pause`` is what the service asked for, in seconds."""

    def __init__(self, reason: str, pause: float | None = None, *, is_busy: bool = False) -> None:
        super().__init__(reason)
        self.pause = pause
        self.is_busy = is_busy


class Service:
    """A web service at ``base``, safe to use from many threads.

    Threads share its rate, breaker and connections; with ``shares``, so many processes share the rate. With a
    ``probe`` a request that fails is no failure of the service as long as the service answers the probe: one
    bad request cannot block all others.
    """

    def __init__(
        self,
        name: str,
        base: str,
        rate_per_second: float,
        headers: Mapping[str, str] | None = None,
        retry_policy: RetryPolicy | None = None,
        *,
        connections: int = 20,
        shares: int = 1,
        probe: Probe | None = None,
    ) -> None:
        self.name = name
        self._base = base.rstrip("/")
        self._patience = retry_policy or RetryPolicy()
        self._rate = Rate(rate_per_second, CrossProcessRateLimiter(self._base), shares)
        self._breaker = Breaker(self._patience.failures, self._patience.rest)
        self._probe = probe
        given = self._patience
        transport, mounts = transports(connections)
        self._client = httpx.Client(
            headers={
                "accept": "application/json",
                "accept-encoding": ENCODINGS,
                "user-agent": _AGENT,
                **(headers or {}),
            },
            timeout=httpx.Timeout(given.read, connect=given.connect, pool=None),
            transport=transport,
            mounts=mounts,
            follow_redirects=False,  # a key in a header must not follow to another host
        )

    def __repr__(self) -> str:
        return f"Service({self.name!r})"

    def get(self, path: str, shape: Shape[T], params: Mapping[str, str] | None = None) -> T:
        """Return the JSON document at ``path``, as ``shape`` converts it. Decimals are exact.

        Raises:
            RequestRejectedError: The service rejects the request.
            UnavailableError: There is no usable answer, after all retries.
        """
        return self._ask("GET", path, _of_document(shape), params=params)

    def get_body(self, path: str, shape: Shape[T], accept: str) -> T:
        """Return the answer to a request for a media type, as ``shape`` converts its :class:`Body`."""
        return self._ask("GET", path, shape, headers={"accept": accept})

    def post(self, path: str, shape: Shape[T], body: Any, calls: int = 1, attempts: int | None = None) -> T:
        """Send a JSON body and return the answer like :meth:`get`.

        The request counts as ``calls`` by the rate and is tried ``attempts`` times at most.
        """
        return self._ask("POST", path, _of_document(shape), calls, attempts, json=body)

    @property
    def most_calls(self) -> int:
        """Number of calls that a request may hold."""
        return self._rate.largest

    @property
    def is_down(self) -> bool:
        """Whether the service is left alone at present."""
        return self._breaker.is_open

    def give_up(self, reason: str) -> NoReturn:
        """Send no more requests (a rejected key) and raise :class:`UnavailableError`, now and every time."""
        self._breaker.open(f"{self.name}: {reason}")
        raise UnavailableError(f"{self.name}: {reason}")

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- Inside --------------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        shape: Shape[T],
        calls: int = 1,
        attempts: int | None = None,
        **request: Any,
    ) -> T:
        if reason := self._breaker.refusal():
            raise UnavailableError(reason)
        most = self._patience.attempts
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(min(attempts or most, most)),
            wait=self._pause,
            retry=tenacity.retry_if_exception(self._worth_a_retry),
            reraise=True,
        )
        try:
            answer: T = retrying(self._once, method, path, shape, calls, request)
        except _TransientError as fault:
            if self._answers_probe():
                self._breaker.succeeded()
            else:
                self._breaker.failed(f"{self.name}: {fault}")
            raise UnavailableError(
                f"{self.name}: {fault}", is_busy=fault.is_busy, pause=fault.pause or 0.0
            ) from fault.__cause__
        except RequestRejectedError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return answer

    def _answers_probe(self) -> bool:
        probe = self._probe
        if probe is None:
            return False
        method, request = ("GET", {}) if probe.json is None else ("POST", {"json": probe.json})
        try:
            self._once(method, probe.path, _of_document(probe.shape), 1, request)
        except RequestRejectedError:
            return True
        except (_TransientError, UnavailableError):
            return False
        return True

    def _worth_a_retry(self, error: BaseException) -> bool:
        return isinstance(error, _TransientError) and (error.pause or 0) <= self._patience.longest_pause

    def _pause(self, state: tenacity.RetryCallState) -> float:
        top: float = self._patience.back_off * 2 ** (state.attempt_number - 1)
        back_off = min(random.uniform(top / 2, top), self._patience.longest_pause)  # noqa: S311
        error = state.outcome.exception() if state.outcome else None
        asked = (isinstance(error, _TransientError) and error.pause) or 0.0
        # The rate is on hold for what the service asks for, so that every thread waits for it.
        return 0.0 if asked >= back_off else back_off

    def _once(self, method: str, path: str, shape: Shape[T], calls: int, request: dict[str, Any]) -> T:
        status, headers, body = self._exchange(method, path, calls, request)
        if status in TRANSIENT:
            pause = retry_after(headers.get("retry-after"), datetime.now(UTC))
            if pause is not None and pause <= self._patience.longest_pause:
                self._rate.hold(pause)
            raise _TransientError(f"HTTP {status}", pause, is_busy=status in _BUSY)
        if 300 <= status < 400:
            raise _TransientError(f"HTTP {status} (moved; correct its address in the configuration)")
        if status >= 400:
            reason = document_or_none(body)
            if reason is None and body.content.lstrip()[:1] in {b"{", b"["}:
                raise _TransientError(f"HTTP {status} with a reason that breaks off")
            raise RequestRejectedError(status, reason)
        try:
            return shape(body)
        except MALFORMED as error:
            raise _TransientError(f"an answer of the wrong form ({wrong_form(error)})") from error

    def _exchange(
        self, method: str, path: str, calls: int, request: dict[str, Any]
    ) -> tuple[int, httpx.Headers, Body]:
        """Send a request and read its response, within the limits of size and time."""
        try:
            with (
                self._rate.request(calls),
                deadline(self._patience.whole),
                self._client.stream(method, f"{self._base}{path}", **request) as response,
            ):
                headers = response.headers
                encoding = headers.get("content-encoding", "")
                content = b"".join(decoded(response.iter_raw(), encoding, self._patience.largest_answer))
                return (
                    response.status_code,
                    headers,
                    Body(content, media_type(headers.get("content-type", ""))),
                )
        except httpx.TimeoutException:
            raise _TransientError("no answer in time") from None
        except httpx.HTTPError as error:
            raise _TransientError(_described(error)) from None
        except (httpx.InvalidURL, UnicodeError):
            raise UnavailableError(f"{self.name}: its address in the configuration is invalid") from None
        except ValueError as error:
            raise _TransientError(str(error)) from None


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks to wait (a number or an HTTP date), else None."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, aware.timestamp() - now.timestamp())
    except (ValueError, TypeError, LookupError, OverflowError):
        return None


def _of_document(shape: Shape[T]) -> Shape[T]:
    return lambda body: shape(document(body))


def _described(error: httpx.HTTPError) -> str:
    """Describe a transport error without its own message, which may quote the address."""
    for kind, words in (
        (httpx.ConnectError, "no connection"),
        (httpx.RemoteProtocolError, "the answer broke off"),
        (httpx.DecodingError, "an answer that does not decompress"),
    ):
        if isinstance(error, kind):
            return words
    return "the connection broke"
