"""``/docs``: the routes in Swagger UI, which the package brings along: no CDN is asked at run time."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parent / "static"
router = APIRouter(include_in_schema=False)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Permalake API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}/static/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="{root}/static/swagger-ui-bundle.js"></script>
<script src="{root}/static/docs.js" data-openapi="{root}/openapi.json"></script>
</body>
</html>
"""
# Nothing but this server's own files; Swagger UI sets styles and draws its icons from data URLs.
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"


@router.get("/docs")
def docs(request: Request) -> Response:
    """Return the page of all routes."""
    root = request.scope.get("root_path", "").rstrip("/")
    return HTMLResponse(_PAGE.format(root=root), headers={"Content-Security-Policy": _POLICY})


def add_docs(app: FastAPI) -> None:
    """Add the page and its files to the application."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
