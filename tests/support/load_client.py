"""A client that takes little processor time: on one machine, a load test takes it from the server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import httptools


@dataclass
class Answer:
    """What a server answered; header names are in lower case."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class Connection(asyncio.Protocol):
    """One connection that is kept; :meth:`get` asks one question after the other."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._transport: asyncio.Transport | None = None

    async def get(self, path: str) -> Answer:
        """Return the answer to a GET of a path.

        Raises:
            ConnectionError: if the server closes the connection before its answer has ended.
        """
        loop = asyncio.get_running_loop()
        if self._transport is None or self._transport.is_closing():
            self._transport, _ = await loop.create_connection(lambda: self, self._host, self._port)
        self._answer, self._done = Answer(), loop.create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\nAccept: */*\r\n\r\n".encode())
        answer: Answer = await self._done
        return answer

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Read a part of the answer."""
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the request that is under way."""
        if not self._done.done():
            self._done.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._answer.headers[name.decode().lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._answer.body += body

    def on_message_complete(self) -> None:
        """Give the answer to who asked."""
        self._answer.status = self._parser.get_status_code()
        self._done.set_result(self._answer)
