"""Which answers pages of other origins may read: those of the API, and no page of this server."""

from __future__ import annotations

import re

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from permalake.config.serving import ServeSettings

_API = re.compile(r"(/[^/]+)?/(api|edb|v1|health)(/.*)?|/openapi\.json", re.DOTALL)


class ApiCors(CORSMiddleware):
    """CORS for paths of the API."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        super().__init__(
            app,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "OPTIONS"],
            allow_headers=["accept", "content-type", "authorization"],
            expose_headers=["etag", "retry-after"],
        )
        self._root_path = settings.root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = str(scope.get("path", "")).removeprefix(self._root_path)
        if scope["type"] == "http" and _API.fullmatch(path):
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)
