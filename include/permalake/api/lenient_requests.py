"""Requests as clients and load balancers send them: HEAD for GET, and addresses with a slash too many."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEAD = "permalake.head"
"""Key of the scope of a GET that answers HEAD."""
_SLASHES = re.compile("/{2,}")


class LenientRequests:
    """Outermost middleware: HEAD is answered as GET without the body, slashes too many are left out.

    A client that joins its node's address ``…/shimmer/`` and ``/api/core/v2/info`` asks for
    ``…/shimmer//api/…``. Below ``folders``, which are served as files, a trailing slash means a folder and
    stays.
    """

    def __init__(self, app: ASGIApp, folders: Collection[str]) -> None:
        self._app = app
        self._folders = tuple(f"{folder}/" for folder in folders)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on in its plain form."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        plain = {**scope, "path": self._plain(scope["path"])}
        if scope["method"] != "HEAD":
            await self._app(plain, receive, send)
            return
        headers = _Headers(receive, send)
        try:
            await self._app({**plain, "method": "GET", HEAD: True}, headers.receive, headers.send)
        except ClientDisconnect:
            return

    def _plain(self, path: str) -> str:
        single = _SLASHES.sub("/", path)
        return single if single.startswith(self._folders) else single.rstrip("/") or "/"


class _Headers:
    """The beginning of an answer; sending its body fails, as the client has left."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._sent = asyncio.Event()

    async def receive(self) -> Message:
        request = asyncio.ensure_future(self._receive())
        sent = asyncio.ensure_future(self._sent.wait())
        await asyncio.wait((request, sent), return_when=asyncio.FIRST_COMPLETED)
        sent.cancel()
        if request.done():
            return request.result()
        request.cancel()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(message)
            return
        if self._sent.is_set():
            raise ClientDisconnect
        self._sent.set()
        await self._send({"type": "http.response.body", "body": b""})
