"""Routes of other servers that a lake of finished days cannot answer: 501, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastapi import APIRouter
from starlette.responses import Response

from permalake.web.problems import documented, not_served


def refuse(router: APIRouter, path: str, reason: str, methods: Iterable[str] = ("GET",)) -> None:
    """Add a route that answers 501 with ``reason`` to each of ``methods``.

    Args:
        router: Where the route is added.
        path: Path template; ``{rest:path}`` takes whatever follows.
        reason: What the route asks for and why there is none, without a full stop.
        methods: Methods that the other server takes.
    """

    def answer() -> Response:
        raise not_served(f"not served: {reason}")

    answer.__doc__ = f"Answer 501: it asks for {reason}."
    parts = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "examples": ["2"]}}
        for name in re.findall(r"{(\w+)", path)
    ]
    for method in methods:
        router.add_api_route(
            path,
            answer,
            methods=[method],
            name=f"not served {path}",
            # No other answer is documented than this one.
            status_code=501,
            responses=documented(501),
            openapi_extra={"parameters": parts} if parts else None,
        )
