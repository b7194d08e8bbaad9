"""HTTP/1.1 over uvicorn whose connections are bounded in number, in the size of headers, and in time.

The server waits for a client in three places: for headers, for a body, and for room to write. Each has a
deadline, after which the connection is cut. When there are more connections than allowed, the one that has
kept the server waiting longest is cut: whoever asks promptly is answered, ``/health`` too.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from permalake.config.serving import ServeSettings

LEAST_RATE = 4096
"""Bytes per second that a client has to take of its answer."""
_IDLE_SECONDS = 5
_HEALTH_SECONDS = 30
"""Seconds in which a worker has to answer its supervisor; a long query may keep it busy."""


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of ``[serve]`` on connections: number, bytes, and seconds."""

    connections: int
    header_bytes: int
    header_seconds: float
    body_seconds: float
    write_seconds: float


class _Phase(Enum):
    """The part of a request that the server waits for: headers, body, or none."""

    HEADERS = 1
    BODY = 2
    NONE = 3


class BoundedHttp(HttpToolsProtocol):
    """One connection. ``waiting`` holds those of the server that wait for their client, longest first."""

    def __init__(
        self, *arguments: Any, limits: ConnectionLimits, waiting: dict[BoundedHttp, None], **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._limits = limits
        self._waiting = waiting
        self._phase = self._timed = _Phase.NONE
        self._header_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for headers; cut another connection when there are too many."""
        super().connection_made(transport)
        # Whatever the kernel does not take at once is under the write deadline.
        transport.set_write_buffer_limits(high=0)
        self._phase = _Phase.HEADERS
        self._follow_phase()
        if len(self.connections) > self._limits.connections:
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End what waits."""
        self._phase = _Phase.NONE
        self._follow_phase()
        self._waiting.pop(self, None)
        self._end_write_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; refuse headers that do not end."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._phase is _Phase.HEADERS:
            self._header_bytes += len(data)
            if self._header_bytes > self._limits.header_bytes:
                self._refuse(b"431 Request Header Fields Too Large")
        if self._phase is not self._timed:
            self._follow_phase()

    def on_message_begin(self) -> None:
        """Begin another request."""
        super().on_message_begin()
        self._phase, self._header_bytes = _Phase.HEADERS, 0
        self._waiting.pop(self, None)

    def on_headers_complete(self) -> None:
        """Begin its body."""
        self._phase = _Phase.BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End it."""
        self._phase = _Phase.NONE
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, for as long as uvicorn lets a connection idle."""
        if not self.pipeline:
            self._waiting[self] = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to take what was written."""
        super().pause_writing()
        self._waiting[self] = None
        self._watch_writing()

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        self._end_write_deadline()
        if self._phase is _Phase.NONE and self._answers():
            self._waiting.pop(self, None)

    def _answers(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _follow_phase(self) -> None:
        """Set the deadline of the phase that has begun."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._waiting.pop(self, None)
        self._timed = self._phase
        if self._phase is not _Phase.NONE:
            self._waiting[self] = None
            limits = self._limits
            seconds = limits.header_seconds if self._phase is _Phase.HEADERS else limits.body_seconds
            self._deadline = self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        self._deadline = None
        if self._phase is _Phase.HEADERS and self._answers():
            # A client may have sent a part of its next request while it reads an answer.
            self._follow_phase()
        elif self._phase is _Phase.HEADERS or not self.cycle.response_started:
            self._refuse(b"408 Request Timeout")
        else:
            self.transport.abort()

    def _refuse(self, status: bytes) -> None:
        """Answer without the application, and close."""
        head = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        self.transport.write(head % status)
        self.transport.close()

    def _watch_writing(self) -> None:
        self._end_write_deadline()
        left = self.transport.get_write_buffer_size()
        self._write_deadline = self.loop.call_later(self._limits.write_seconds, self._check_writing, left)

    def _check_writing(self, before: int) -> None:
        taken = before - self.transport.get_write_buffer_size()
        if taken < LEAST_RATE * self._limits.write_seconds:
            self.transport.abort()
        else:
            self._watch_writing()

    def _end_write_deadline(self) -> None:
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None


def bounded_config(
    app: ASGIApp | Callable[[], ASGIApp], settings: ServeSettings, host: str, port: int, workers: int = 0
) -> uvicorn.Config:
    """Return uvicorn's configuration for an application, bounded as ``[serve]`` says.

    With ``workers``, each of so many processes makes its own by calling ``app``.
    """
    limits = ConnectionLimits(
        settings.connections,
        settings.header_bytes,
        settings.header_timeout,
        settings.body_timeout,
        settings.write_timeout,
    )
    protocol = partial(BoundedHttp, limits=limits, waiting={})
    return uvicorn.Config(
        app,
        factory=bool(workers),
        workers=workers or 1,
        timeout_worker_healthcheck=_HEALTH_SECONDS,
        host=host,
        port=port,
        http=cast("type[asyncio.Protocol]", protocol),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(settings.timeout),
    )
