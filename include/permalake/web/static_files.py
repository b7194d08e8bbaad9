"""Folders of files, as both servers offer them."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope


class HostlessFiles(StaticFiles):
    """Files whose redirects name a path alone: the framework takes the host from the request's header."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the file, or the redirect to a folder."""
        answer = await super().get_response(path, scope)
        if "location" in answer.headers:
            answer.headers["location"] = urlsplit(answer.headers["location"]).path
        return answer
