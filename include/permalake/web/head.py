"""The live head of a network in answers: how far it is, and what it alone has.

Headers have it, so that foreign dialects keep their shape. A route of :class:`HeadRoute` answers from
history; what history does not have, it answers from published days and head together. Such an answer is
marked, and nobody may keep it: the day's own build will replace what it rests on. Nor may anybody keep one
that still lacks something, which the head may have a moment later.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from permalake.lake.head_position import HeadPosition, head_positions
from permalake.web.problems import ProblemError
from permalake.web.responses import JSON, also_shows
from permalake.web.state import RequestLake

MILESTONE = "Permalake-Head-Milestone"
TIME = "Permalake-Head-Time"
LAG = "Permalake-Head-Lag"
PROVISIONAL = "Permalake-Provisional"
"""``true`` on every answer that rests on a head."""
_CONTRACT = ("/api/permanode/", "/api/wormhole/")
"""Prefixes of the contract's own routes, whose objects have the member ``provisional``."""
_CORE_V2 = "core v2"
"""The routes of a Stardust node stand below the contract's prefix too, in their own form."""
UNHEALTHY: dict[int | str, dict[str, Any]] = {
    503: {"description": "No day is published, or the store does not answer."}
}
"""The responses of a network's health beside 200."""
_Handler = Callable[[Request], Awaitable[Response]]


def head_of(request: Request, network: str) -> HeadPosition | None:
    """Return the position of a network's head; None where nobody has followed it since its last day."""
    return head_positions(request.app.state.database).get(network)


def with_head_headers(request: Request, network: str, response: Response) -> Response:
    """Add the head's last milestone, if it has any, its time and its lag in seconds, if there is a head."""
    if position := head_of(request, network):
        if position.index is not None:
            response.headers[MILESTONE] = str(position.index)
        response.headers[TIME] = f"{position.at:%Y-%m-%dT%H:%M:%SZ}"
        response.headers[LAG] = f"{position.lag():.1f}"
    return response


def health_of(lake: RequestLake, table: str) -> Response:
    """Return 200 with the head's headers once a table has a published day and the store answers, else 503."""
    published = lake.snapshot.days(lake.network, table)
    is_well = published and lake.request.app.state.stores.answer(lake.network)
    return with_head_headers(lake.request, lake.network, Response(status_code=200 if is_well else 503))


def current_with_head(lake: RequestLake, content: Any) -> Response:
    """Return JSON of a published state with the head's headers, a 304 too."""
    # Its tag differs from that of the state alone, which is answered without this function.
    also_shows(lake.request, "head")
    return with_head_headers(lake.request, lake.network, lake.current(content))


class HeadRoute(APIRoute):
    """A route whose 404, or answer that ``lacks`` something, the network's head may have an answer for."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler around the route's own."""
        handler = super().get_route_handler()
        is_of_contract = self.path.startswith(_CONTRACT) and _CORE_V2 not in self.tags

        async def handle(request: Request) -> Response:
            first = await _answer(handler, request)
            if not _lacks(request, first):
                return _given(first)
            network = getattr(request.state, "network", None)
            whole = network and await run_in_threadpool(request.app.state.reader.heads.whole, network)
            if not whole:
                return _unkept(_given(first))
            request.state.whole, request.state.lacks = whole, False
            second = await _answer(handler, request)
            if _lacks(request, second):
                return _unkept(_given(first))
            return _provisional(_unkept(_given(second)), is_of_contract=is_of_contract)

        return handle


async def _answer(handler: _Handler, request: Request) -> Response | ProblemError:
    try:
        return await handler(request)
    except ProblemError as error:
        return error


def _lacks(request: Request, answer: Response | ProblemError) -> bool:
    is_missing = isinstance(answer, ProblemError) and answer.status == 404
    return is_missing or getattr(request.state, "lacks", False)


def _given(answer: Response | ProblemError) -> Response:
    if isinstance(answer, ProblemError):
        raise answer
    return answer


def _unkept(response: Response) -> Response:
    """Let nobody keep an answer: it may change before the next publication, which is all that a tag tells."""
    response.headers["Cache-Control"] = "no-store"
    del response.headers["ETag"]
    return response


def _provisional(response: Response, *, is_of_contract: bool) -> Response:
    """Mark an answer that rests on a head."""
    response.headers[PROVISIONAL] = "true"
    if is_of_contract and response.headers.get("content-type") == JSON:
        content = {**json.loads(bytes(response.body)), "provisional": True}
        response.body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
        response.headers["Content-Length"] = str(len(response.body))
    return response
