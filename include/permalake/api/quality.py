"""The Quality page: audits by day and table, quarantine with reasons, Data Docs, and a day's lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from permalake.api.audit_results import by_table, day_lineage, day_results, staged_tables
from permalake.api.pages import SITE, RangeOptions
from permalake.contracts import QUARANTINE
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.lake import DayStatus
from permalake.lake.leases import DAYS
from permalake.lake.serving import Scan as Days
from permalake.lake.status import networks_with_days, published_again, status
from permalake.transparency import corrections
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.parameter_types import FormDate, FormNetwork
from permalake.web.problems import documented, not_found
from permalake.web.published import published_state
from permalake.web.state import RequestLake, lake_of
from permalake.web.table_pages import json_value

Json = dict[str, Any]
router = page_router()
_DAYS = 14
_INPUTS = 25
_AGAIN = 60


class QualityOptions(RangeOptions):
    """Parameters of the page."""

    network: FormNetwork = None
    day: date | None = None


@router.get("/quality", responses=documented())
def quality(request: Request, query: Annotated[QualityOptions, Query()]) -> Response:
    """Show audits, quarantine and lineage of a network; without one, of the first."""
    database = request.app.state.database
    networks = sorted(networks_with_days(database) | published_state(request).networks())
    if query.network and query.network not in networks:
        raise not_found(f"network {query.network}")
    if not networks:
        return page(request, None, "quality.html", {"network": None, "known": []}, SITE)
    network: str = query.network or networks[0]
    lake = lake_of(request, network)
    days = _between(status(database, network), query)
    shown = {"network": network, "known": networks, "start": _text(query.start), "end": _text(query.end)}
    return page(
        request, None, "quality.html", shown | _audits(lake, days, query) | _quarantine(lake, query), SITE
    )


class ChangesOptions(PageOptions):
    """Parameters of the comparison."""

    network: FormNetwork = None
    day: FormDate = None
    publication: int | None = None


@router.get("/quality/changes", responses=documented())
def changes(request: Request, query: Annotated[ChangesOptions, Query()]) -> Response:
    """Compare a publication of a day with the one before it; without a number, the newest that has one.

    Without a day, show which days were published more than once.
    """
    database = request.app.state.database
    again = {network: sorted(days) for network, days in published_again(database).items()}
    networks = sorted(networks_with_days(database) | published_state(request).networks())
    network = query.network or next(iter(sorted(again)), networks[0] if networks else "")
    if query.day is None:
        return page(request, None, "changes.html", _choice(network, networks, again), SITE)
    rows = corrections.publications_of(database, network, query.day)
    if not rows:
        raise not_found(f"day {query.day} of {network}")
    listed = [
        {"number": row["id"], "time": row["published_at"], "kind": row["kind"], "before": _before(rows, at)}
        for at, row in enumerate(rows)
    ]
    # Who names none wants to see what changed of the day, not of the sums that run on over it.
    choice = sorted(listed, key=lambda publication: publication["kind"] != DAYS)
    chosen = next(
        (
            publication
            for publication in choice
            if publication["before"] and query.publication in (None, publication["number"])
        ),
        None,
    )
    if query.publication and chosen is None:
        raise not_found(f"publication {query.publication} of that day, with an earlier one,")
    shown = _choice(network, networks, again) | {"day": query.day.isoformat(), "publications": listed}
    if chosen:
        numbers = chosen["before"], chosen["number"]
        shown |= {"number": numbers[1], "before": numbers[0]}
        try:
            changed = corrections.changes_of(database, domain_of, network, query.day, numbers)
            shown["tables"] = [asdict(change) for change in changed]
        except PermalakeError as error:
            shown["problem"] = str(error)
    return page(request, None, "changes.html", shown, SITE)


def _choice(network: str, networks: Sequence[str], again: Mapping[str, Sequence[date]]) -> Json:
    """Return the page before a day is chosen: the networks, and the days that were published again."""
    days = [{"date": day.isoformat()} for day in reversed(again.get(network, ())[-_AGAIN:])]
    shown: Json = {"network": network, "known": list(networks), "again": days, "day": "", "publications": []}
    return shown | {"number": None, "before": None, "tables": [], "problem": None}


def _before(rows: Sequence[Mapping[str, Any]], at: int) -> int | None:
    """Return the number of the publication before one, of the same kind; rows are newest first."""
    earlier = (row["id"] for row in rows[at + 1 :] if row["kind"] == rows[at]["kind"])
    return next(earlier, None)


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
