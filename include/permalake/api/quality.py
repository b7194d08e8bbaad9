"""The Quality page: audits by day and table, quarantine with reasons, Data Docs, and a day's lineage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from permalake.api.audit_results import by_table, day_lineage, day_results, staged_tables
from permalake.api.pages import SITE, RangeOptions, lake_of
from permalake.audit import docs
from permalake.contracts import QUARANTINE
from permalake.domains import domain_of
from permalake.lake import DayStatus
from permalake.lake.serving import Scan as Days
from permalake.lake.status import networks_with_days, status
from permalake.web.html import page, styled_headers
from permalake.web.problems import documented, not_found
from permalake.web.state import RequestLake
from permalake.web.static_files import HostlessFiles
from permalake.web.table_pages import json_value

Json = dict[str, Any]
router = APIRouter(tags=["pages"], include_in_schema=False)
_DAYS = 14
_INPUTS = 25
# Data Docs hold their style sheet; nothing else may be loaded or run.
_DOCS_HEADERS = [(name.lower().encode(), value.encode()) for name, value in styled_headers().items()]


class QualityOptions(RangeOptions):
    """Parameters of the page."""

    network: str | None = None
    day: date | None = None


@router.get("/quality", responses=documented())
def quality(request: Request, query: Annotated[QualityOptions, Query()]) -> Response:
    """Show audits, quarantine and lineage of a network; without one, of the first."""
    database = request.app.state.database
    known = sorted(networks_with_days(database) | request.app.state.reader.snapshot().networks())
    if query.network and query.network not in known:
        raise not_found(f"network {query.network}")
    if not known:
        return page(request, None, "quality.html", {"network": None, "known": []}, SITE)
    network: str = query.network or known[0]
    lake = lake_of(request, network)
    own = _between(status(database, network), query)
    shown = {"network": network, "known": known, "start": _text(query.start), "end": _text(query.end)}
    return page(
        request, None, "quality.html", shown | _audits(lake, own, query) | _quarantine(lake, query), SITE
    )


def _text(day: date | None) -> str:
    return day.isoformat() if day else ""


def _between(days: Sequence[DayStatus], query: RangeOptions) -> list[DayStatus]:
    """Return the days of the range that a run has looked at, newest first."""
    first, last = query.start or date.min, query.end or date.max
    return [day for day in reversed(days) if first <= day.date <= last]


def _audits(lake: RequestLake, days: Sequence[DayStatus], query: QualityOptions) -> Json:
    chosen = next((day for day in days if day.date == query.day), None) if query.day else None
    if query.day and chosen is None:
        raise not_found(f"day {query.day} of {lake.network}")
    chosen = chosen or (days[0] if days else None)
    results = [day_results(lake, day) for day in days[:_DAYS]]
    return {
        "days": results,
        "earlier": days[_DAYS].date.isoformat() if len(days) > _DAYS else None,
        "tables": by_table(results, staged_tables(domain_of(lake.network))),
        "lineage": {"date": chosen.date.isoformat(), **day_lineage(lake, chosen)} if chosen else None,
    }


def _quarantine(lake: RequestLake, query: RangeOptions) -> Json:
    if not lake.snapshot.table(lake.network, QUARANTINE.name):
        return {"reasons": [], "inputs": []}
    scan = {QUARANTINE.name: Days(query.start, query.end)}
    bound = {"first": query.start or date.min, "last": query.end or date.max}
    where = f"FROM {QUARANTINE.name} WHERE date BETWEEN $first AND $last"
    reasons = lake.rows(
        f"SELECT reason, count(*) AS inputs, min(date) AS first, max(date) AS last {where} "
        "GROUP BY reason ORDER BY inputs DESC, reason",
        bound,
        **scan,
    )
    inputs = lake.rows(
        "SELECT date, source, origin, reason, detail, seen_at "  # raw may be large
        f"{where} ORDER BY date DESC, reason, origin LIMIT {_INPUTS}",
        bound,
        **scan,
    )
    return {
        "reasons": [_values(row) for row in reasons],
        "inputs": [_values(row) for row in inputs],
    }


def _values(row: Json) -> Json:
    return {name: json_value(value) for name, value in row.items()}


class _DataDocs(HostlessFiles):
    """The pages of the audits, which may hold a style sheet and nothing else."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *_DOCS_HEADERS,
                ]
            await send(message)

        await super().__call__(scope, receive, with_policy)


def add_data_docs(app: FastAPI, folder: Path | None = None) -> None:
    """Serve the Data Docs of audits at ``/audit``; ``folder``: where they lie, if not in the lake's home."""
    app.mount("/audit", _DataDocs(directory=folder or docs.root(), html=True, check_dir=False), name="audit")
