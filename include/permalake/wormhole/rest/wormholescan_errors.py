"""Errors of Wormholescan's routes: problem documents that also have its ``code`` and ``message``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from permalake.web.head import HeadRoute
from permalake.web.problems import ProblemError, validation_detail

_CODES = {400: 3, 404: 5, 501: 12}
"""gRPC's codes, which Wormholescan uses: invalid argument, not found, unimplemented."""


class WormholescanRoute(HeadRoute):
    """A route of :class:`HeadRoute` whose problems carry Wormholescan's members."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler around the route's own."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as error:
                raise _explained(ProblemError(400, validation_detail(request, error))) from None
            except ProblemError as error:
                raise _explained(error) from None

        return handle


def _explained(error: ProblemError) -> ProblemError:
    extra = {"code": _CODES.get(error.status, 13), "message": error.detail, "details": list[Any]()}
    return ProblemError(error.status, error.detail, headers=error.headers, extra={**error.extra, **extra})
