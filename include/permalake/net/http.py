"""One way to ask a web service: with patience where it helps, with limits everywhere, and discreet.

What an error or a log line tells of a request is the service's name and what came of it. Addresses,
headers and parameters stay out of both: an API key may stand in any of them.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import httpx
import tenacity

from permalake.net.limits import Breaker, Rate
from permalake.net.shared_pace import SharedPace

T = TypeVar("T")
Shape = Callable[[Any], T]
"""Takes a document apart; ValueError, KeyError or TypeError when it is none of the expected kind."""


@dataclass(frozen=True)
class Body:
    """An answer as it came: its bytes, and the media type that it claims to be of (lower case, without
    parameters)."""

    content: bytes
    media: str


_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_AGENT = "permalake"
# Their log lines hold whole addresses.
for _noisy in ("httpx", "httpcore"):
    logging.getLogger(_noisy).setLevel(logging.WARNING)


@dataclass(frozen=True)
class Patience:
    """Limits of one service. Times are seconds; ``attempts`` and ``back_off`` bound the retries of a
    request, ``failures`` the requests that may fail in a row before the service is left alone."""

    connect: float = 10.0
    read: float = 30.0
    whole: float = 60.0
    attempts: int = 8
    back_off: float = 0.5
    longest_pause: float = 90.0
    failures: int = 3
    rest: float = 60.0
    largest_answer: int = 32 * 2**20


class UnavailableError(Exception):
    """The service gave no usable answer; the message is one line. Nothing is known of what was asked."""


class RefusedError(Exception):
    """The service answered, with an error of the request's own (4xx): ``status``, and its JSON ``body``,
    None when it is none."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


class _PassingError(Exception):
    """A fault that may be over the next time; ``pause`` is what the service asked for."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class Service:
    """A service at ``base``, safe to use from many threads: they share its rate, its breaker and its
    connections."""

    def __init__(
        self,
        name: str,
        base: str,
        rate_per_second: float,
        headers: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        *,
        connections: int = 20,
    ) -> None:
        self.name = name
        self._base = base.rstrip("/")
        self._patience = patience or Patience()
        self._rate = Rate(rate_per_second, SharedPace(self._base))
        self._breaker = Breaker(self._patience.failures, self._patience.rest)
        given = self._patience
        self._client = httpx.Client(
            headers={"accept": "application/json", "user-agent": _AGENT, **(headers or {})},
            timeout=httpx.Timeout(given.read, connect=given.connect, pool=None),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            follow_redirects=False,  # a key in a header must not follow to another host
        )

    def get(self, path: str, shape: Shape[T], params: Mapping[str, str] | None = None) -> T:
        """What ``shape`` makes of the document at ``path``. Numbers with a point arrive as exact decimals.

        :class:`RefusedError` or :class:`UnavailableError` when there is none.
        """
        return self._ask("GET", path, _of_document(shape), params=params)

    def get_body(self, path: str, shape: Shape[T], accept: str) -> T:
        """What ``shape`` makes of the answer (a :class:`Body`) to a request for a media type."""
        return self._ask("GET", path, shape, headers={"accept": accept})

    def post(self, path: str, shape: Shape[T], body: Any, calls: int = 1, attempts: int | None = None) -> T:
        """The same for a request with a JSON body, which counts as so many by the rate, with so many attempts
        at most."""
        return self._ask("POST", path, _of_document(shape), calls, attempts, json=body)

    @property
    def most_calls(self) -> int:
        """How many calls a request may hold."""
        return self._rate.largest

    def give_up(self, reason: str) -> NoReturn:
        """Leave the service alone from now on (a refused key): :class:`UnavailableError` every time."""
        self._breaker.open(f"{self.name}: {reason}")
        raise UnavailableError(f"{self.name}: {reason}")

    def close(self) -> None:
        """Let go of its connections."""
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
            answer = retrying(self._once, method, path, shape, calls, request)
        except _PassingError as fault:
            self._breaker.failed(f"{self.name}: {fault}")
            raise UnavailableError(f"{self.name}: {fault}") from None
        except RefusedError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return answer

    def _worth_a_retry(self, error: BaseException) -> bool:
        return isinstance(error, _PassingError) and (error.pause or 0) <= self._patience.longest_pause

    def _pause(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, _PassingError) and error.pause is not None:
            return 0.0  # every thread waits for it: the rate is on hold
        top: float = self._patience.back_off * 2 ** (state.attempt_number - 1)
        return min(random.uniform(top / 2, top), self._patience.longest_pause)  # noqa: S311

    def _once(self, method: str, path: str, shape: Shape[T], calls: int, request: dict[str, Any]) -> T:
        try:
            with (
                self._rate.request(calls),
                self._client.stream(method, f"{self._base}{path}", **request) as response,
            ):
                status, headers = response.status_code, response.headers
                content = self._read(response)
        except httpx.TimeoutException:
            raise _PassingError("no answer in time") from None
        except httpx.HTTPError as error:
            raise _PassingError(_spoken(error)) from None
        except (httpx.InvalidURL, UnicodeError):
            raise UnavailableError(f"{self.name}: its address in the configuration is none") from None
        if status in _PASSING:
            pause = retry_after(headers.get("retry-after"), datetime.now(UTC))
            if pause is not None and pause <= self._patience.longest_pause:
                self._rate.hold(pause)
            raise _PassingError(f"HTTP {status}", pause)
        if 300 <= status < 400:
            raise _PassingError(f"HTTP {status} (moved; mend its address in the configuration)")
        if status >= 400:
            reason = _document_or_none(content)
            if reason is None and content.lstrip()[:1] in {b"{", b"["}:
                raise _PassingError(f"HTTP {status} with a reason that breaks off")
            raise RefusedError(status, reason)
        try:
            return shape(Body(content, _media(headers.get("content-type", ""))))
        except (ValueError, KeyError, TypeError, LookupError, ArithmeticError) as error:
            raise _PassingError(f"an answer of the wrong form ({_why(error)})") from None

    def _read(self, response: httpx.Response) -> bytes:
        """The body, decompressed, within its limits of size and time: a read time-out alone lets a service
        drip for ever."""
        deadline = time.monotonic() + self._patience.whole
        parts, size = [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > self._patience.largest_answer:
                raise _PassingError(f"an answer of more than {self._patience.largest_answer} bytes")
            if time.monotonic() > deadline:
                raise _PassingError("no whole answer in time")
            parts.append(part)
        return b"".join(parts)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks to wait (a number, or an HTTP date); None when it does not."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now.timestamp())


def _of_document(shape: Shape[T]) -> Shape[T]:
    return lambda body: shape(document(body))


def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def document(body: Body) -> Any:
    """The JSON of an answer; ValueError when it is none."""
    return _document(body.content)


def _document(content: bytes) -> Any:
    try:
        return json.loads(content, parse_float=Decimal, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("no JSON") from None


def _document_or_none(content: bytes) -> Any:
    try:
        return _document(content)
    except ValueError:
        return None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _spoken(error: httpx.HTTPError) -> str:
    """A transport error in words of our own: its message may quote the address."""
    for kind, words in (
        (httpx.ConnectError, "no connection"),
        (httpx.RemoteProtocolError, "the answer broke off"),
        (httpx.DecodingError, "an answer that does not decompress"),
    ):
        if isinstance(error, kind):
            return words
    return "the connection broke"


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"no {error.args[0]!r}"[:80]
    return " ".join(str(error).split())[:80] or type(error).__name__
