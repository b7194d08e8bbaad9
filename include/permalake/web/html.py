"""Pages: the data of a handler as HTML or, for who asks for it, as JSON.

Templates lie in ``site`` folders of the packages. Nothing on a page comes from elsewhere, and nothing stands
inline: no style, no font; scripts only on pages that ask for this server's own. Everything from a chain is
escaped; control characters are shown as marks.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from permalake.contracts.rows import Row
from permalake.sanitize import shown
from permalake.web.accept import preferred
from permalake.web.numbers import CoinUnit, amount, coins, dollars, formatted, short, worth
from permalake.web.published import published_state
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
_NOT_LISTED = (
    *("cards", "charts", "fields", "heads", "links", "matrix", "metadata", "orders", "sections", "states"),
    *("synthetic", "timeline"),
)
"""Lists of pages that are no tables: they have no link to CSV."""
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


STYLED_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
}
"""Headers of a page with a style inline and nothing else: no script, nothing from elsewhere."""


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
        request: Accepts JSON, or names ``format=json``, for JSON; ``format=csv&list=NAME`` for a list of it,
            or ``format=parquet``.
        publication: Number of the state that the JSON is of; None where it also has unpublished days.
        template: Name of the template in one of ``folders``.
        content: What the page shows, as JSON values; the template sees each of them.
        folders: Templates beside those of :data:`SITE`.
        scripts: Whether the page may load scripts of this server, and these ask it.
    """
    content = {**content, "synthetic": _synthetic(request, content)}
    if getattr(request.state, "whole", None):
        content["provisional"] = True
    if (form := request.query_params.get("format")) in _LIST_FORMS:
        media, encode = _LIST_FORMS[form]
        name = request.query_params.get("list", "")
        answer = current(request, publication, encode(_list_of(content, name)), media)
        answer.headers["Content-Disposition"] = f'attachment; filename="{name or "list"}.{form}"'
        return answer
    if wants_json(request):
        return current_json(request, publication, _without_markup(content))
    answer = current(request, None, _rendered(request, template, content, folders), _MEDIA_TYPE)
    answer.headers.update(HEADERS)
    if scripts:
        answer.headers["Content-Security-Policy"] = _SCRIPTS + _POLICY
    return answer


def problem_page(request: Request, status: int, title: str, detail: str) -> Response:
    """Return a problem as a page with the way back, and with the range of days that was asked for."""
    network = getattr(request.state, "network", None)
    content: dict[str, Any] = {"network": network, "title": title, "detail": detail, "synthetic": []}
    content["range"] = _range_of(request)
    text = _rendered(request, "problem.html", content, ())
    return Response(text, status, {**HEADERS, "Cache-Control": "no-store"}, _MEDIA_TYPE)


def _range_of(request: Request) -> tuple[str, str] | None:
    """Return the dates ``start`` and ``end`` of a request; None where they are not given as such."""
    try:
        first, last = (date.fromisoformat(request.query_params[name]) for name in ("start", "end"))
    except (KeyError, ValueError):
        return None
    return first.isoformat(), last.isoformat()


def _rendered(
    request: Request, template: str, content: Mapping[str, Any], folders: tuple[Path, ...]
) -> bytes:
    state = request.app.state
    snapshot = published_state(request) if state.reader else None
    values = {
        "coin": None,
        "query": None,
        **content,
        "root": request.scope.get("root_path", ""),
        "networks": sorted(snapshot.networks()) if snapshot else [],
        "nav": state.sections,
        "here": content.get("network"),
        "publication": snapshot.publication if snapshot else None,
        # Whether links may pin rows to a publication: where the server takes SQL, which Airflow's does not.
        "pinned": snapshot.publication if snapshot and getattr(state, "takes_sql", False) else None,
        "as_json": _asked_as(request, format="json"),
        "as_range": _as_range(request, content),
        "as_csv": {
            name: _asked_as(request, format="csv", list=name)
            for name in _lists(content)
            if not name.startswith(_NOT_LISTED)
        },
    }
    return _environment(folders).get_template(template).render(values).encode()


def _synthetic(request: Request, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the synthetic days that a page of days shows.

    A page of one thing marks it where it stands; it is told here where its network has nothing else.
    """
    if request.app.state.reader is None:
        return []
    synthetic = synthetic_days(published_state(request), content.get("network"))
    if content.get("network") and "end" not in content:
        return [days for days in synthetic if days["is_everything"]]
    last = content.get("end") or ""
    return [days for days in synthetic if not last or days["first"] <= last]


def _lists(content: Mapping[str, Any], above: str = "") -> dict[str, list[Mapping[str, Any]]]:
    """Return the lists of rows of a page by name, inner ones by path: ``history.moves``."""
    lists: dict[str, list[Mapping[str, Any]]] = {}
    for key, value in content.items():
        name = above if key == "found" else f"{above}{key}"
        if isinstance(value, Mapping) and key != "json":
            lists |= _lists(value, f"{name}." if name else "")
        elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            lists[name or key] = value
    return lists


def _list_of(content: Mapping[str, Any], name: str) -> list[Row]:
    """Return the rows of a list of a page, with the same plain values in each."""
    lists = _lists(content)
    if name not in lists:
        raise HTTPException(400, f"list: choose from {', '.join(sorted(lists)) or 'none'}")
    rows = lists[name]
    columns = [
        column
        for column in dict.fromkeys(column for row in rows for column in row)
        if not any(isinstance(row.get(column), Markup | Mapping) for row in rows)
    ]
    return [{column: _cell(row.get(column)) for column in columns} for row in rows]


def _as_csv(rows: list[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _as_parquet(rows: list[Row]) -> bytes:
    """Return Parquet; a column whose values are of several types is text."""
    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        kinds = {type(value) for value in values if value is not None}
        columns[name] = (
            pa.array(values)
            if len(kinds) == 1
            else pa.array([None if value is None else str(value) for value in values], pa.string())
        )
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue()


_LIST_FORMS: dict[str | None, tuple[str, Callable[[list[Row]], bytes]]] = {
    "csv": ("text/csv; charset=utf-8", _as_csv),
    "parquet": ("application/vnd.apache.parquet", _as_parquet),
}


def _cell(value: Any) -> Any:
    """Return a value of a file's row: a list is text, its pairs are written ``ID=AMOUNT``."""
    if not isinstance(value, list):
        return value
    parts = (part.values() if isinstance(part, Mapping) else (part,) for part in value)
    return " ".join("=".join(map(str, part)) for part in parts)


def _as_range(request: Request, content: Mapping[str, Any]) -> str | None:
    """Return the query that names the days that a page shows; None where it does already, or shows none."""
    days = {name: content.get(name) for name in ("start", "end")}
    if not all(days.values()) or days.keys() <= request.query_params.keys():
        return None
    return _asked_as(request, **{name: str(day) for name, day in days.items()})


def _asked_as(request: Request, **parameters: str) -> str:
    """Return the query of the request with other parameters."""
    kept = [pair for pair in request.query_params.multi_items() if pair[0] not in parameters]
    return "?" + urlencode([*kept, *parameters.items()])


def wants_page(request: Request) -> bool:
    """Return whether a request of a page asks for HTML, as browsers do; others get problems as JSON."""
    tags = getattr(request.scope.get("route"), "tags", ())
    return "pages" in tags and preferred(request, (JSON, HTML)) == HTML and not wants_json(request)


def wants_json(request: Request) -> bool:
    """Return whether a request asks for JSON: by ``format=json``, or because it prefers it to HTML."""
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    return preferred(request, (HTML, JSON)) == JSON


def go_to(request: Request, path: str, **parameters: str) -> Response:
    """Redirect to another page of this server, in the form that was asked for.

    Args:
        request: The request; its ``format`` goes along.
        path: Absolute path below the server's root.
        parameters: Its query.
    """
    form = request.query_params.get("format")
    query = parameters | ({"format": form} if form else {})
    query_string = f"?{urlencode(query)}" if query else ""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{path}{query_string}", 303)


def _without_markup(value: Any) -> Any:
    """Leave out drawings: JSON has their figures."""
    if isinstance(value, CoinUnit):
        return asdict(value)
    if isinstance(value, Mapping):
        return {
            name: _without_markup(member) for name, member in value.items() if not isinstance(member, Markup)
        }
    if isinstance(value, list | tuple):
        return [_without_markup(member) for member in value]
    return value if isinstance(value, str | int | float | None) else None


def _moment(text: str | None) -> str:
    return f"{text[:10]} {text[11:19]}" if text else "–"


def _shown_text(text: str, most: int) -> str:
    """Return text of several lines as :func:`shown` has each line."""
    return "\n".join(shown(line, most) for line in text[:most].splitlines())


def _days_before(day: str, days: int) -> str:
    """Return the date so many days before one, both as text."""
    number = date.fromisoformat(day).toordinal() - days
    return date.fromordinal(max(number, 1)).isoformat()


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
        days_before=_days_before,
        shown=shown,
        shown_text=_shown_text,
        usd=dollars,
        formatted=formatted,
        coins=coins,
        short=short,
        amount=amount,
        moment=_moment,
        duration=duration,
    )
    made.globals["worth"] = worth
    return made
