"""Files that pages lead to: the style sheet, and the Data Docs of audits."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import FileResponse, Response

from permalake.audit import docs
from permalake.web.html import SITE, STYLED_HEADERS
from permalake.web.page_router import page_router
from permalake.web.static_files import HostlessFiles

router = page_router()
DATA_DOCS = "/audit"


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
