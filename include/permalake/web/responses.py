"""Answers with their validators: what never changes may be kept for ever, all else is checked again.

A block, a message or a proof is immutable: its ETag is that of the edition (the lake's id, and the settings
that show) and the request. A list or a ledger state depends on the published state too: the publication's
number goes into its ETag. So a repeated request with ``If-None-Match`` gets 304 without a look at the lake. A
page shows other things too, such as today's date: its ETag follows from its bytes.

Answers to POST depend on the body too: they have no tag, and nobody may keep them.
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
_CHECK = "no-cache"
_NOT_KEPT = {"Cache-Control": "no-store", "Vary": "Accept"}
_OF_PATH = ("GET", "HEAD")
"""Methods whose answer follows from path, query and headers; that of others depends on the body too."""
_IMMUTABLE = "immutable"


def wants(request: Request, types: Sequence[str]) -> str | None:
    """Return that of ``types`` which the client prefers to JSON; None for JSON, the default."""
    media_type = preferred(request, (JSON, *types))
    return None if media_type == JSON else media_type


def wants_raw(request: Request) -> str | None:
    """Return the type in which raw bytes are asked for; None for JSON."""
    return wants(request, RAW_TYPES)


def immutable_json(request: Request, content: Any) -> Response:
    """Return JSON that never changes at its path."""
    return _answer(request, _tag(request, _IMMUTABLE), _for_ever(request), _dump(content), JSON)


def immutable_bytes(request: Request, content: bytes, media_type: str = RAW_TYPES[1]) -> Response:
    """Return bytes that never change at their path."""
    return _answer(request, _tag(request, _IMMUTABLE), _for_ever(request), content, media_type)


def not_modified(request: Request, publication: int) -> Response | None:
    """Return 304 where the client holds what this state answers; None where that is not known.

    It follows from the tag alone, without the lake: only an answer that was given has it.
    """
    held = request.headers.get("if-none-match")
    if held is None:
        return None
    for of_state, caching in ((_IMMUTABLE, _for_ever(request)), (str(publication), _CHECK)):
        tag = _tag(request, of_state)
        if tag in _held(held):
            return Response(status_code=304, headers=_headers(tag, caching))
    return None


def current_json(request: Request, publication: int | None, content: Any) -> Response:
    """Return JSON that holds for the published state of that number; None: see :func:`current`."""
    return current(request, publication, _dump(content), "application/json")


def current(request: Request, publication: int | None, content: bytes, media_type: str) -> Response:
    """Return an answer that holds for the published state of that number.

    None where it also shows what no publication moves, such as runs: its ETag follows from its bytes.
    """
    if publication is None:
        return _answer(request, _digest(hashlib.sha256(content).hexdigest()), _CHECK, content, media_type)
    of_state = (
        f"{publication} {shows}" if (shows := getattr(request.state, "shows", "")) else str(publication)
    )
    return _answer(request, _tag(request, of_state), _CHECK, content, media_type)


def edition(settings: Settings, lake_id: str) -> str:
    """Return what answers depend on beside the published state, as a digest."""
    shown = settings.model_dump_json(include={"networks", "wormhole", "prices", "serve"})
    return hashlib.blake2b(f"{lake_id}\n{shown}".encode(), digest_size=12).hexdigest()


def also_shows(request: Request, version: str) -> None:
    """Say which version of something that is neither published nor configured an answer shows."""
    request.state.shows = version


def _for_ever(request: Request) -> str:
    """Return what keeps an answer for ever: with tokens its client alone, as a shared cache asks for none."""
    keeper = "private" if request.app.state.settings.serve.tokens else "public"
    return f"{keeper}, max-age=31536000, immutable"


def _dump(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _tag(request: Request, of_state: str) -> str:
    """Return the tag of what a request gets from a state: of its path, query and Accept header."""
    scope = request.scope
    accept = ",".join(request.headers.getlist("accept"))
    query = scope["query_string"].decode("latin-1")
    return _digest(request.app.state.edition, of_state, scope["path"], query, accept)


def _digest(*parts: str) -> str:
    text = "\n".join((VERSION, *parts))
    return f'"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'


def _held(header: str) -> list[str]:
    return [tag.strip().removeprefix("W/") for tag in header.split(",")]


def _headers(tag: str, caching: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": caching, "Vary": "Accept"}


def _answer(request: Request, tag: str, caching: str, content: bytes, media_type: str) -> Response:
    if request.method not in _OF_PATH:
        return Response(content, headers=_NOT_KEPT, media_type=media_type)
    headers = _headers(tag, caching)
    held = _held(request.headers.get("if-none-match", ""))
    if tag in held or held == ["*"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)
