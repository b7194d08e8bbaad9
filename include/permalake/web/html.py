"""Pages: the data of a handler as HTML or, for who asks for it, as JSON.

Templates lie in ``site`` folders of the packages. Nothing on a page comes from elsewhere: no script, no
inline style, no font. Everything from a chain is escaped; control characters are shown as marks.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from permalake.web.numbers import amount, dollars, short
from permalake.web.responses import current, current_json
from permalake.web.synthetic import synthetic_days

SITE = Path(__file__).parent / "site"
LONGEST_TEXT = 2_000
"""Characters of a value that a page shows; JSON has all of it."""
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of control characters, marks of direction, surrogates and line separators."""
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def page(
    request: Request, publication: int, template: str, content: Mapping[str, Any], *folders: Path
) -> Response:
    """Return a page of one published state, or its ``content`` as JSON.

    Args:
        request: Accepts JSON, or names ``format=json``, for JSON.
        publication: Number of the published state.
        template: Name of the template in one of ``folders``.
        content: What the page shows, as JSON values; the template sees each of them.
        folders: Templates beside those of :data:`SITE`.
    """
    snapshot = request.app.state.reader.snapshot()
    content = {**content, "synthetic": synthetic_days(snapshot, content.get("network"))}
    if wants_json(request):
        return _json(request, publication, content)
    values = {
        **content,
        "root": request.scope.get("root_path", ""),
        "networks": sorted(snapshot.networks()),
        "here": content.get("network"),
        "publication": publication,
        "as_json": "?" + urlencode([*request.query_params.multi_items(), ("format", "json")]),
    }
    text = _environment(folders).get_template(template).render(values)
    answer = current(request, publication, text.encode(), "text/html; charset=utf-8")
    answer.headers.update(_HEADERS)
    return answer


def wants_json(request: Request) -> bool:
    """Return whether a request asks for JSON: by ``format=json``, or by Accept without HTML."""
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def _json(request: Request, publication: int, content: Mapping[str, Any]) -> Response:
    return current_json(request, publication, _without_markup(content))


def _without_markup(value: Any) -> Any:
    """Leave out drawings: JSON has their figures."""
    if isinstance(value, Mapping):
        return {name: _without_markup(one) for name, one in value.items() if not isinstance(one, Markup)}
    if isinstance(value, list | tuple):
        return [_without_markup(one) for one in value]
    return value if isinstance(value, str | int | float | None) else None


def shown(value: Any, most: int = LONGEST_TEXT) -> str:
    """Return text from a chain as a page may show it: marks for unseen characters, cut to ``most``."""
    text = str(value)
    cut = text[:most]
    marked = "".join(_mark(letter) for letter in cut)
    return marked if len(text) <= most else f"{marked}… ({len(text):,} characters)"


def _mark(letter: str) -> str:
    if letter in "\n\t":
        return letter
    if unicodedata.category(letter) in _UNSEEN:
        return f"[U+{ord(letter):04X}]"
    return letter


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
    made.filters.update(tidy=_tidy, shown=shown, usd=dollars, short=short, amount=amount)
    return made
