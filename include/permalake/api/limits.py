"""What protects the server: at most so many requests at once, so long, so large, so often, from so few."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from permalake.api.metrics import ApiMetrics
from permalake.config import ServeSettings
from permalake.web.problems import problem_response

MAX_URL = 8192
_CLIENTS = 100_000
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


class RateLimit:
    """Requests per client and minute, as buckets of tokens that fill evenly; 0: no limit."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float) -> float:
        """Return 0 and count a request, or the seconds until the client may ask again."""
        if not self._per_minute:
            return 0.0
        tokens, seen = self._buckets.pop(client, (float(self._per_minute), now))
        tokens = min(self._per_minute, tokens + (now - seen) * self._per_minute / 60)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) * 60 / self._per_minute


class RequestLimits:
    """Middleware that refuses what exceeds ``[serve]``, gives requests their deadline, and counts them.

    An exception of a handler that no problem document explains ends here: it is logged, the client gets 500.
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: ApiMetrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._tokens = [token.get_secret_value().encode() for token in settings.tokens]
        self._rate = RateLimit(settings.rate_per_minute)
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._queued = 0

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
            async with self._slot(scope["state"]["deadline"]):
                await self._app(scope, self._bounded(receive, answer), answer.send)
        except _RefusedRequest as refused:
            self._metrics.rejected.labels(refused.reason).inc()
            if not answer.status:
                response = problem_response(refused.status, refused.detail, refused.headers)
                await response(scope, receive, answer.send)
        except Exception:
            _LOG.exception("%s %s failed", scope["method"], scope["path"])
            if answer.status:
                raise
            response = problem_response(500, "internal error; the server's log says more")
            await response(scope, receive, answer.send)
        finally:
            self._count(scope, answer.status, time.monotonic() - began)

    def _check(self, scope: Scope, now: float) -> None:
        headers = Headers(scope=scope)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL:
            raise _RefusedRequest(414, "url", f"the address is longer than {MAX_URL} bytes")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self._settings.body_bytes:
            raise _too_large(self._settings.body_bytes)
        healthy = scope["path"] == "/health" or scope["path"].endswith("/health")
        if self._tokens and not healthy and not self._knows(headers.get("authorization", "")):
            raise _RefusedRequest(
                401, "token", "this server wants a bearer token", {"WWW-Authenticate": "Bearer"}
            )
        client = scope["client"][0] if scope.get("client") else ""
        if wait := self._rate.wait(client, now):
            after = {"Retry-After": str(int(wait) + 1)}
            raise _RefusedRequest(429, "rate", "too many requests from this address", after)

    def _knows(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        given = token.strip().encode()
        known = [hmac.compare_digest(given, one) for one in self._tokens]
        return scheme.lower() == "bearer" and any(known)

    @asynccontextmanager
    async def _slot(self, deadline: float) -> AsyncIterator[None]:
        if self._slots.locked() and self._queued >= self._settings.queue:
            raise _busy()
        self._queued += 1
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._slots.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._queued -= 1
        self._metrics.in_flight.inc()
        try:
            yield
        finally:
            self._metrics.in_flight.dec()
            self._slots.release()

    def _bounded(self, receive: Receive, answer: _Answer) -> Receive:
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._settings.body_bytes:
                answer.refusal = _too_large(self._settings.body_bytes)
                raise answer.refusal
            return message

        return bounded

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        network = scope["state"].get("network", "")
        route = getattr(scope.get("route"), "path", "none")
        if network:
            route = f"{route}/".replace(f"/{network}/", "/{network}/").rstrip("/")
        self._metrics.requests.labels(route, scope["method"], str(status), network).inc()
        self._metrics.seconds.labels(route, network).observe(seconds)


class _Answer:
    """Passes an answer on and remembers its status; 0 before it has begun.

    ``refusal``: why the request's body was cut short. FastAPI makes a 400 of that, which is not passed on.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.refusal: _RefusedRequest | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self.refusal is not None:
                refusal, self.refusal = self.refusal, None
                raise refusal
            self.status = message["status"]
        await self._send(message)


def _too_large(most: int) -> _RefusedRequest:
    return _RefusedRequest(413, "body", f"the body is larger than {most} bytes")


def _busy() -> _RefusedRequest:
    return _RefusedRequest(503, "queue", "the server is busy; try again", {"Retry-After": "1"})
