"""Answers with their validators: what never changes may be kept for ever, all else is checked again.

A block, a message or a proof is immutable: its ETag is its id and format. A list or a ledger state depends
on the published state and on the configuration: its ETag is the edition (the lake's id, and the settings that
show), the publication's number and the request. A page tells of other things too, such as today's date: its
ETag follows from its bytes. Each way a repeated request with ``If-None-Match`` gets 304.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from permalake.config import Settings
from permalake.version import VERSION
from permalake.web.accept import preferred

JSON = "application/json"
RAW_TYPES = ("application/vnd.iota.serializer-v1", "application/octet-stream")
_FOR_EVER = "public, max-age=31536000, immutable"
_CHECK = "no-cache"


def wants(request: Request, types: Sequence[str]) -> str | None:
    """Return that of ``types`` which the client prefers to JSON; None for JSON, the default."""
    media_type = preferred(request, (JSON, *types))
    return None if media_type == JSON else media_type


def wants_raw(request: Request) -> str | None:
    """Return the type in which raw bytes are asked for; None for JSON."""
    return wants(request, RAW_TYPES)


def immutable_json(request: Request, key: str, content: Any) -> Response:
    """Return JSON that never changes. ``key`` identifies it, by id and format."""
    return _answer(request, _tag(key, "json"), _FOR_EVER, _dump(content), "application/json")


def immutable_bytes(request: Request, key: str, content: bytes, media_type: str = RAW_TYPES[1]) -> Response:
    """Return bytes that never change. ``key`` identifies them, by id and format."""
    return _answer(request, _tag(key, media_type), _FOR_EVER, content, media_type)


def current_json(request: Request, publication: int | None, content: Any) -> Response:
    """Return JSON that holds for the published state of that number; None: see :func:`current`."""
    return current(request, publication, _dump(content), "application/json")


def current(request: Request, publication: int | None, content: bytes, media_type: str) -> Response:
    """Return an answer that holds for the published state of that number.

    None where it also tells of what no publication moves, such as runs: its ETag follows from its bytes.
    """
    if publication is None:
        return _answer(request, _tag(hashlib.sha256(content).hexdigest()), _CHECK, content, media_type)
    shown = (request.app.state.edition, getattr(request.state, "shows", ""), str(publication))
    tag = _tag(*shown, str(request.url.path), request.url.query, media_type)
    return _answer(request, tag, _CHECK, content, media_type)


def edition(settings: Settings, lake_id: str) -> str:
    """Return what answers depend on beside the published state, as a digest."""
    shown = settings.model_dump_json(include={"networks", "wormhole", "prices", "serve"})
    return hashlib.blake2b(f"{lake_id}\n{shown}".encode(), digest_size=12).hexdigest()


def also_shows(request: Request, version: str) -> None:
    """Say which version of something that is neither published nor configured an answer shows."""
    request.state.shows = version


def _dump(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _tag(*parts: str) -> str:
    text = "\n".join((VERSION, *parts))
    return f'"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'


def _answer(request: Request, tag: str, caching: str, content: bytes, media_type: str) -> Response:
    headers = {"ETag": tag, "Cache-Control": caching, "Vary": "Accept"}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known or known == ["*"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)
