"""JSON that clients send: one reader for every body, which bounds what a parser could be made to do.

It reads UTF-8 of at most 200 levels and numbers of at most 4,300 digits, and takes no lone surrogates, no NaN
and no Infinity. The size of a body is bounded before (``serve.body_bytes``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from permalake.web.problems import bad_request


def read_json(body: bytes) -> Any:
    """Return the value of a body.

    Raises:
        ProblemError: 400 that says where it is no JSON.
    """
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from None


class _JsonRequest(Request):
    async def json(self) -> Any:
        return read_json(await self.body())


class JsonRoute(APIRoute):
    """Route whose handler takes a JSON body: ``APIRouter(route_class=JsonRoute)``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which reads bodies by :func:`read_json`."""
        answer = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await answer(_JsonRequest(request.scope, request.receive))

        return handler
