"""Files that pages lead to: the style sheet, and the Data Docs of audits."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from permalake.audit import docs
from permalake.web.html import SITE, STYLED_HEADERS
from permalake.web.page_router import page_router

router = page_router()
DATA_DOCS = "/audit"


class HostlessFiles(StaticFiles):
    """Files whose redirects name a path alone: the framework takes the host from the request's header."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the file, or the redirect to a folder."""
        answer = await super().get_response(path, scope)
        if "location" in answer.headers:
            answer.headers["location"] = urlsplit(answer.headers["location"]).path
        return answer


@router.get("/static/site.css")
def style() -> Response:
    """Return the style sheet."""
    return FileResponse(SITE / "site.css", media_type="text/css", headers={"Cache-Control": "no-cache"})


@router.get(f"{DATA_DOCS}/{{path:path}}")
async def data_docs(request: Request, path: str) -> Response:
    """Return a file of the audits' Data Docs: they hold their style, and load and run nothing else."""
    files = HostlessFiles(directory=docs.root(), html=True, check_dir=False)
    answer = await files.get_response(path, request.scope)
    answer.headers.update(STYLED_HEADERS)
    return answer
