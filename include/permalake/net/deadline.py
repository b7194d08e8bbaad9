"""An HTTP transport with a deadline for a whole exchange.

A read time-out bounds the silence between two bytes. A server that sends a header byte every few seconds
would keep a request busy for days.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

_request = threading.local()


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Let every network operation of this thread time out once ``seconds`` have passed."""
    _request.until = time.monotonic() + seconds
    try:
        yield
    finally:
        _request.until = None


def transports(connections: int) -> tuple[httpx.BaseTransport, dict[str, httpx.BaseTransport | None]]:
    """Return a transport with deadlines, and those of the proxies that the environment names."""
    mounts: dict[str, httpx.BaseTransport | None] = {}
    proxies = urllib.request.getproxies()
    for scheme in ("http", "https", "all"):
        if address := proxies.get(scheme):
            proxy = address if "://" in address else f"http://{address}"
            mounts[f"{scheme}://"] = _Transport(connections, proxy)
    for host in filter(None, (name.strip() for name in proxies.get("no", "").split(","))):
        mounts["all://" if host == "*" else f"all://*{host}" if host[0] == "." else f"all://{host}"] = None
    return _Transport(connections), mounts


@cache
def _trusted() -> SSLContext:
    """Return the context of every connection: reading the certificates takes longer than a request."""
    return httpx.create_ssl_context()


class _Transport(httpx.HTTPTransport):
    """An HTTP transport whose sockets keep to the deadline of the thread."""

    def __init__(self, connections: int, proxy: str | None = None) -> None:
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        super().__init__(verify=_trusted(), limits=limits, proxy=proxy)
        # httpx hands no network backend through; tests show that deadlines hold.
        pool = vars(self._pool)
        pool["_network_backend"] = _Backend(pool["_network_backend"])


class _Backend(httpcore.NetworkBackend):
    """Connections that keep to the deadline."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Open a connection before the deadline."""
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.connect_tcp(host, port, left, local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        """Pause between attempts to connect."""
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    """A connection whose reads and writes keep to the deadline."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read before the deadline."""
        return self._inner.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write before the deadline."""
        self._inner.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Start TLS before the deadline."""
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        """Return a fact of the connection, such as its socket."""
        return self._inner.get_extra_info(info)


def _left(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    until: float | None = getattr(_request, "until", None)
    if until is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0:
        raise late("the deadline has passed")
    return left if timeout is None else min(timeout, left)
