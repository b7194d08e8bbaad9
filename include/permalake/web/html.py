"""Pages: the data of a handler as HTML or, for who asks for it, as JSON.

Templates lie in ``site`` folders of the packages. Nothing on a page comes from elsewhere, and nothing stands
inline: no style, no font; scripts only on pages that ask for this server's own. Everything from a chain is
escaped; control characters are shown as marks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from permalake.hostile_text import shown
from permalake.web.accept import preferred
from permalake.web.numbers import amount, dollars, short, signed
from permalake.web.responses import JSON, current, current_json
from permalake.web.synthetic import synthetic_days
from permalake.web.timeline import duration

SITE = Path(__file__).parent / "site"
HTML = "text/html"
_MEDIA_TYPE = f"{HTML}; charset=utf-8"
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_SCRIPTS = "script-src 'self'; connect-src 'self'; "
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def styled_headers(ancestors: str = "'none'") -> dict[str, str]:
    """Return the headers of a page with a style inline and nothing else: no script, nothing from elsewhere.

    ``ancestors`` are the origins whose pages may frame it.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'"
    return {**_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors {ancestors}"}


def page(
    request: Request,
    publication: int | None,
    template: str,
    content: Mapping[str, Any],
    *folders: Path,
    scripts: bool = False,
) -> Response:
    """Return a page of one published state, or its ``content`` as JSON.

    Args:
        request: Accepts JSON, or names ``format=json``, for JSON.
        publication: Number of the state that the JSON is of; None where it also tells of unpublished days.
        template: Name of the template in one of ``folders``.
        content: What the page shows, as JSON values; the template sees each of them.
        folders: Templates beside those of :data:`SITE`.
        scripts: Whether the page may load scripts of this server, and these ask it.
    """
    snapshot = request.app.state.reader.snapshot()
    content = {**content, "synthetic": synthetic_days(snapshot, content.get("network"))}
    if wants_json(request):
        return current_json(request, publication, _without_markup(content))
    answer = current(request, None, _rendered(request, template, content, folders), _MEDIA_TYPE)
    answer.headers.update(_HEADERS)
    if scripts:
        answer.headers["Content-Security-Policy"] = _SCRIPTS + _POLICY
    return answer


def problem_page(request: Request, status: int, title: str, detail: str) -> Response:
    """Return a problem as a page with the way back."""
    network = getattr(request.state, "network", None)
    content: dict[str, Any] = {"network": network, "title": title, "detail": detail, "synthetic": []}
    text = _rendered(request, "problem.html", content, ())
    return Response(text, status, {**_HEADERS, "Cache-Control": "no-store"}, _MEDIA_TYPE)


def _rendered(
    request: Request, template: str, content: Mapping[str, Any], folders: tuple[Path, ...]
) -> bytes:
    snapshot = request.app.state.reader.snapshot()
    values = {
        **content,
        "root": request.scope.get("root_path", ""),
        "networks": sorted(snapshot.networks()),
        "here": content.get("network"),
        "publication": snapshot.publication,
        "as_json": "?" + urlencode([*request.query_params.multi_items(), ("format", "json")]),
    }
    return _environment(folders).get_template(template).render(values).encode()


def wants_page(request: Request) -> bool:
    """Return whether a request of a page asks for HTML, as browsers do; others get problems as JSON."""
    tags = getattr(request.scope.get("route"), "tags", ())
    return "pages" in tags and preferred(request, (JSON, HTML)) == HTML and not wants_json(request)


def wants_json(request: Request) -> bool:
    """Return whether a request asks for JSON: by ``format=json``, or because it prefers it to HTML."""
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    return preferred(request, (HTML, JSON)) == JSON


def go_to(request: Request, path: str) -> Response:
    """Redirect to another page of this server, in the form that was asked for.

    Args:
        request: The request; its ``format`` goes along.
        path: Absolute path below the server's root.
    """
    form = request.query_params.get("format")
    query = f"?{urlencode({'format': form})}" if form else ""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{path}{query}", 303)


def _without_markup(value: Any) -> Any:
    """Leave out drawings: JSON has their figures."""
    if isinstance(value, Mapping):
        return {name: _without_markup(one) for name, one in value.items() if not isinstance(one, Markup)}
    if isinstance(value, list | tuple):
        return [_without_markup(one) for one in value]
    return value if isinstance(value, str | int | float | None) else None


def _moment(text: str | None) -> str:
    return f"{text[:10]} {text[11:19]}" if text else "–"


def _tidy(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


@lru_cache(maxsize=8)
def _environment(folders: tuple[Path, ...]) -> Environment:
    made = Environment(
        loader=FileSystemLoader([SITE, *folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        tidy=_tidy,
        shown=shown,
        usd=dollars,
        short=short,
        amount=amount,
        signed=signed,
        moment=_moment,
        duration=duration,
    )
    return made
