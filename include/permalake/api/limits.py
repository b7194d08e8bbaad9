"""Limits that protect the server: requests at once, their length, size and rate, and who may send them."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import lru_cache
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from permalake.api.at_once import AtOnce
from permalake.api.compression import LEAST_BYTES, compressed
from permalake.api.shared_counts import RateLimit
from permalake.config.serving import ServeSettings
from permalake.pages.metrics import ApiMetrics
from permalake.web.problems import problem_in_form, problem_response

MAX_URL = 8192
FEED, FEED_SLOTS = "/api/publications", 64
"""The feed of publications, and how many requests may wait for the next one."""
HEALTH_SLOTS = 4
"""Requests for ``/health`` that are answered at once, beside the others."""
_COUNTERS = 4096
"""Counters of routes, methods, statuses and networks that are kept at hand."""
_CLIENT_GONE = 499
"""The status that nginx logs for a client that left before its answer."""
_LOG = logging.getLogger(__name__)


class _RefusedRequest(Exception):  # noqa: N818
    """A request that a limit refuses, with the answer's status, detail and headers."""

    def __init__(
        self, status: int, reason: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.headers = headers


class _Slots:
    """Room for ``size`` requests at once; as many as ``queue`` wait for it, ``patience`` seconds."""

    def __init__(self, size: int, queue: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._queue = queue
        self._waiting = 0

    @asynccontextmanager
    async def hold(self, patience: float) -> AsyncIterator[None]:
        if self._free.locked() and self._waiting >= self._queue:
            raise _busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(patience):
                await self._free.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()


class _Clients:
    """Room for ``most`` requests of each client at once, so that none takes all slots; 0: no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._active: Counter[str] = Counter()

    @asynccontextmanager
    async def hold(self, scope: Scope) -> AsyncIterator[None]:
        client = scope["client"][0] if scope.get("client") else ""
        if not self._most or is_loopback(client):
            yield
            return
        if self._active[client] >= self._most:
            detail = f"this address has {self._most} requests under way; try again"
            raise _RefusedRequest(503, "client", detail, {"Retry-After": "1"})
        self._active[client] += 1
        try:
            yield
        finally:
            self._active[client] -= 1
            if not self._active[client]:
                del self._active[client]


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Return whether an address, or the name of a host, is this machine's loopback."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class RequestLimits:
    """Middleware that refuses what exceeds ``[serve]``, gives requests their deadline, and counts them.

    An exception of a handler that no problem document explains ends here: it is logged, the client gets 500.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        networks: Collection[str],
        metrics: ApiMetrics,
        at_once: AtOnce,
    ) -> None:
        self._app = app
        self._settings = settings
        self._health = {"/health", *(f"/{network}/health" for network in networks)}
        self._metrics = metrics
        self._at_once = at_once
        self._clients = _Clients(settings.client_concurrency)
        self._tokens = [token.get_secret_value().encode() for token in settings.tokens]
        self._rate = RateLimit(settings.rate_per_minute)
        self._slots = _Slots(settings.concurrency, settings.queue)
        # Whoever asks whether the server lives must not wait for those who keep it busy.
        self._health_slots = _Slots(HEALTH_SLOTS, settings.queue)
        # Whoever waits for the next publication keeps nobody else waiting.
        self._feed_slots = _Slots(FEED_SLOTS, 0)
        self._counters = lru_cache(_COUNTERS)(metrics.of_requests)
        self._bodies = 0
        """Bytes of bodies that are read and not answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        answer = _Answer(send)
        scope.setdefault("state", {})["deadline"] = began + self._settings.timeout
        try:
            self._check(scope, began)
            # What needs no query waits for none.
            if response := await self._at_once.answer(scope):
                large = len(response.body) >= LEAST_BYTES
                await (compressed(response) if large else response)(scope, receive, answer.send)
                return
            slots = self._slots_of(scope)
            # A body that comes slowly takes no slot.
            async with (
                self._whole_body(scope, receive) as whole,
                nullcontext() if slots is self._health_slots else self._clients.hold(scope),
                slots.hold(self._settings.queue_seconds),
            ):
                with self._metrics.in_flight.track_inprogress():
                    await self._app(scope, whole, answer.send)
        except ClientDisconnect:
            pass
        except _RefusedRequest as refused:
            self._metrics.rejected.labels(refused.reason).inc()
            if not answer.status:
                response = problem_response(refused.status, refused.detail, refused.headers)
                await response(scope, receive, answer.send)
        except Exception:
            _LOG.exception("%s %s failed", scope["method"], scope["path"])
            if answer.status:
                raise
            response = problem_in_form(Request(scope), 500, "internal error; the server's log says more")
            await response(scope, receive, answer.send)
        finally:
            self._count(scope, answer.status or _CLIENT_GONE, time.monotonic() - began)

    def _check(self, scope: Scope, now: float) -> None:
        client = scope["client"][0] if scope.get("client") else ""
        if wait := self._rate.wait(client, now):
            after = {"Retry-After": str(int(wait) + 1)}
            raise _RefusedRequest(429, "rate", "too many requests from this address", after)
        headers = Headers(scope=scope)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL:
            raise _RefusedRequest(414, "url", f"the address is longer than {MAX_URL} bytes")
        if sum(len(name) + len(value) for name, value in headers.raw) > self._settings.header_bytes:
            detail = f"the headers are larger than {self._settings.header_bytes} bytes"
            raise _RefusedRequest(431, "headers", detail)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self._settings.body_bytes:
            raise _too_large(self._settings.body_bytes)
        if self._tokens and not self._is_health(scope) and not self._knows(headers.get("authorization", "")):
            raise _RefusedRequest(
                401, "token", "this server wants a bearer token", {"WWW-Authenticate": "Bearer"}
            )

    def _slots_of(self, scope: Scope) -> _Slots:
        if self._is_health(scope):
            return self._health_slots
        return self._feed_slots if scope["path"].removesuffix("/").endswith(FEED) else self._slots

    def _is_health(self, scope: Scope) -> bool:
        path: str = scope["path"]
        return path in self._health or path.removeprefix(self._settings.root_path) in self._health

    def _knows(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        given = token.strip().encode()
        matches = [hmac.compare_digest(given, expected) for expected in self._tokens]
        return scheme.lower() == "bearer" and any(matches)

    @asynccontextmanager
    async def _whole_body(self, scope: Scope, receive: Receive) -> AsyncIterator[Receive]:
        """Read the body, and give a ``receive`` that has it at once."""
        headers = Headers(scope=scope)
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            yield receive
            return
        body = bytearray()
        try:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunk = message.get("body", b"")
                self._bodies += len(chunk)
                body += chunk
                if len(body) > self._settings.body_bytes:
                    raise _too_large(self._settings.body_bytes)
                if self._bodies > self._settings.concurrency * self._settings.body_bytes:
                    raise _busy()
                more = message.get("more_body", False)
            yield _replayed(bytes(body), receive)
        finally:
            self._bodies -= len(body)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        network = scope["state"].get("network", "")
        route = getattr(scope.get("route"), "path", "none")
        requests, times = self._counters(route, scope["method"], status, network)
        requests.inc()
        times.observe(seconds)


class _Answer:
    """Passes an answer on and remembers its status; 0 before it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a body, then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


def _too_large(most: int) -> _RefusedRequest:
    return _RefusedRequest(413, "body", f"the body is larger than {most} bytes")


def _busy() -> _RefusedRequest:
    return _RefusedRequest(503, "queue", "the server is busy; try again", {"Retry-After": "1"})
