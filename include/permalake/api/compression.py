"""Compression of text: zstd where a whole answer is at hand, gzip for streams and for other clients."""

from __future__ import annotations

import re

import pyarrow as pa
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST_BYTES = 2048
"""Size below which compressing costs more than it saves."""
_GZIP_LEVEL = 5
_TEXT = re.compile(r"text/|application/(problem\+)?json|application/javascript|image/svg")
_LEVEL = 3


def compressed(app: ASGIApp) -> ASGIApp:
    """Return an application whose answers of text are compressed, where that saves something."""
    # Starlette's middleware leaves what is encoded already as it is.
    return GZipMiddleware(_ZstdText(app), minimum_size=LEAST_BYTES, compresslevel=_GZIP_LEVEL)


class _ZstdText:
    """Middleware that compresses whole answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._codec = pa.Codec("zstd", compression_level=_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and _takes_zstd(Headers(scope=scope).get("accept-encoding", "")):
            await self._app(scope, receive, _Encoder(send, self._codec).send)
        else:
            await self._app(scope, receive, send)


class _Encoder:
    """Holds the beginning of an answer until its body shows whether it is whole."""

    def __init__(self, send: Send, codec: pa.Codec) -> None:
        self._send = send
        self._codec = codec
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if (start := self._start) is not None:
            self._start = None
            headers = MutableHeaders(raw=list(start["headers"]))
            body = message.get("body", b"")
            whole = not message.get("more_body", False) and len(body) >= LEAST_BYTES
            if whole and "content-encoding" not in headers and _TEXT.match(headers.get("content-type", "")):
                body = self._codec.compress(body, asbytes=True)
                headers["content-encoding"] = "zstd"
                headers["content-length"] = str(len(body))
                headers.add_vary_header("Accept-Encoding")
                start, message = {**start, "headers": headers.raw}, {**message, "body": body}
            await self._send(start)
        await self._send(message)


def _takes_zstd(header: str) -> bool:
    """Return whether an Accept-Encoding header names zstd, and not with a weight of 0."""
    for part in header.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name == "zstd":
            return not any(re.fullmatch(r"q=0(\.0*)?", parameter) for parameter in parameters)
    return False
