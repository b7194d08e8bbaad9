"""The runbook of reasons as a page: every code with what it means and what to do."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Query, Request
from markupsafe import Markup, escape
from starlette.responses import Response

from permalake.contracts.reasons import REASONS, TITLES
from permalake.pages import SITE
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.problems import documented

router = page_router()
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_CODE = re.compile(r"`([^`]+)`")


def chapters() -> list[dict[str, Any]]:
    """Return the chapters: their title, and reasons as code, meaning, remedy, markup."""
    return [
        {
            "title": title,
            "reasons": [
                {
                    "code": code,
                    "meaning": REASONS[code].meaning,
                    "remedy": REASONS[code].remedy,
                    "markup": _markup(REASONS[code].remedy),
                }
                for code in codes
            ],
        }
        for title, codes in TITLES.items()
    ]


@router.get("/reasons", responses=documented())
def reasons(request: Request, query: Annotated[PageOptions, Query()]) -> Response:  # noqa: ARG001
    """Show every code of a reason with what it means and what to do."""
    return page(request, None, "reasons.html", {"chapters": chapters()}, SITE)


def _markup(text: str) -> Markup:
    """Return a remedy with its code in ``code``; of a link to another runbook, its name and its file."""
    named = _LINK.sub(r"\1 (`docs/runbooks/\2`)", text)
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(named))))  # noqa: S704 - escaped before
