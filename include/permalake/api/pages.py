"""Pages of the whole lake: the overview, and a page of charts for every network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from pydantic import ConfigDict, Field
from starlette.responses import FileResponse, Response

from permalake import pages as calendar
from permalake.domains import domain_of, stores_of
from permalake.lake import DayStatus
from permalake.lake.serving import EVERYTHING
from permalake.lake.status import carried_until, status
from permalake.pages.days import STATES, DayState, months, needs_somebody, reason_of, state_of, trouble_of
from permalake.web import html
from permalake.web.daily_charts import daily_chart
from permalake.web.html import go_to, page
from permalake.web.numbers import CoinUnit, formatted
from permalake.web.paging import NoQuery
from permalake.web.problems import ProblemError, documented
from permalake.web.ranges import DayRange, newest_real
from permalake.web.state import RequestLake, set_network
from permalake.web.year_strip import year_strip

router = APIRouter(tags=["pages"], include_in_schema=False)
style_router = APIRouter(include_in_schema=False)
"""To be included before the folder of static files that its path lies in."""
SITE = Path(__file__).parent / "site"
"""Templates of this package."""
_CALENDAR = Path(calendar.__file__).parent
_MONTHS, _MONTHS_OF_ALL = 3, 8
"""Months of a network, and of all: a day takes some 250 bytes of the page."""
_YEARS, _YEARS_OF_ALL = 4, 8
"""Years of a network, and of all: one takes some 8 kB of the page."""
_TROUBLES = 30


class PageOptions(NoQuery):
    """Parameters of every page."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    format: str | None = None


class RangeOptions(PageOptions, DayRange):
    """Parameters of a page over a range of days."""


@style_router.get("/static/site.css")
def style() -> Response:
    """Return the style sheet."""
    return FileResponse(html.SITE / "site.css", media_type="text/css", headers={"Cache-Control": "no-cache"})


@router.get("/", responses=documented())
def overview(request: Request, query: Annotated[PageOptions, Query()]) -> Response:  # noqa: ARG001
    """Show a card per network, the calendar of days, and what needs attention."""
    reader = request.app.state.reader
    days: dict[str, list[DayStatus]] = {}
    for day in status(request.app.state.database):
        days.setdefault(day.network, []).append(day)
    for network in reader.snapshot().networks():
        days.setdefault(network, [])
    found = [_network(lake_of(request, name), own, max(len(days), 1)) for name, own in sorted(days.items())]
    shown = {
        "cards": found,
        "states": [
            {"name": state.name, "mark": state.mark, "word": state.word, "meaning": state.meaning}
            for state in STATES.values()
            if state.mark
        ],
        "troubles": [trouble for card in found for trouble in card["troubles"]][:_TROUBLES],
    }
    # A day that fails moves no publication.
    return page(request, None, "overview.html", shown, SITE, _CALENDAR)


def _network(lake: RequestLake, days: Sequence[DayStatus], networks: int) -> dict[str, Any]:
    stores = [store.name for store in stores_of(lake.settings, lake.network)]
    states = [(day, state_of(day, stores)) for day in days]
    published = [day.date for day in days if day.published]
    counts: dict[str, int] = {}
    for _, state in states:
        counts[state.word] = counts.get(state.word, 0) + 1
    return {
        "network": lake.network,
        "last": _iso(newest_real(published)),
        "carried": _iso(carried_until(days)),
        "published": len(published),
        "quarantined": sum(day.quarantined for day in days),
        "states": counts,
        "figures": _figures(lake, newest_real(published)),
        "days": [
            {
                "date": day.date.isoformat(),
                "state": state.name,
                "rows": sum(day.rows.values()),
                "quarantined": day.quarantined,
                "reason": reason_of(day),
            }
            for day, state in states
        ],
        "troubles": [
            {
                "network": lake.network,
                "date": day.date.isoformat(),
                "state": state.name,
                "word": state.word,
                "reason": trouble_of(day),
            }
            for day, state in reversed(states)
            if needs_somebody(state)
        ],
        "calendar": _Calendar(
            *months(days, stores, max(1, min(_MONTHS, _MONTHS_OF_ALL // networks))),
            _years(states, max(1, min(_YEARS, _YEARS_OF_ALL // networks))),
        ),
    }


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _coin(lake: RequestLake) -> CoinUnit | None:
    configured = lake.network in lake.settings.networks
    return domain_of(lake.network).coin_of(lake.settings, lake.network) if configured else None


class _Calendar:
    """Months and years for the template; JSON has the days instead."""

    def __init__(self, shown: Sequence[Any], more: int, years: Mapping[int, Markup]) -> None:
        self.shown = shown
        self.more = more
        self.years = years


def _years(states: Sequence[tuple[DayStatus, DayState]], most: int) -> dict[int, Markup]:
    """Return the newest years that have a day, as pictures; synthetic ones only where there are no others."""
    told = {day.date: (state.name, state.word) for day, state in states}
    this_year = datetime.now(UTC).year
    every = sorted({day.year for day in told}, key=lambda year: (year <= this_year, year), reverse=True)
    return {year: year_strip(year, told) for year in every[:most]}


def _figures(lake: RequestLake, until: date | None) -> list[dict[str, Any]]:
    """Figures over all real days; over the synthetic ones where there are no others."""
    found = []
    coin = _coin(lake)
    for figure in domain_of(lake.network).figures:
        if lake.snapshot.table(lake.network, figure.table) is None:
            continue
        (row,) = lake.kept_rows(
            f'SELECT {figure.sql} AS value, {figure.valued or "count(*)"} AS valued, count(*) AS "of" '  # noqa: S608
            f"FROM {figure.table} WHERE date <= $until",
            {"until": until or date.max},
            **{figure.table: EVERYTHING},
        )
        value = row["value"]
        found.append(
            {
                "label": figure.label,
                "unit": figure.unit,
                "value": None if value is None else str(value),
                "shown": formatted(value, figure.unit, coin),
                **({"valued": row["valued"], "of": row["of"]} if figure.valued else {}),
            }
        )
    return found


class SearchOptions(PageOptions):
    """Parameters of the search at the top of every page."""

    q: str = Field("", max_length=400)
    network: str = Field("", max_length=64, alias="in")


@router.get("/search", responses=documented())
def search(request: Request, query: Annotated[SearchOptions, Query()]) -> Response:
    """Go to the search of the network that was chosen."""
    if query.network not in request.app.state.reader.snapshot().networks():
        raise ProblemError(404, f"{query.network}: nothing of this network is published")
    explorer = domain_of(query.network).explorer
    path = f"{query.network}/{explorer}" if explorer else query.network
    return go_to(request, f"/{quote(path)}", q=query.q)


@router.get("/{network}", responses=documented())
def network_page(request: Request, network: str, query: Annotated[RangeOptions, Query()]) -> Response:
    """Show charts of a network's daily analytics over a range of days."""
    if network not in request.app.state.reader.snapshot().networks():
        raise ProblemError(404, "no such route")
    lake = lake_of(request, network)
    first, last = days_of(lake, query)
    coin = _coin(lake)
    charts = [
        daily_chart(lake, chart, first, last, coin)
        for chart in domain_of(network).charts
        if lake.snapshot.table(network, chart.table)
    ]
    shown = {
        "network": network,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "coin": coin,
        "charts": [chart for chart in charts if chart["days"]],
    }
    return page(request, lake.snapshot.publication, "network.html", shown, SITE)


def days_of(lake: RequestLake, query: RangeOptions) -> tuple[date, date]:
    """Return the range that a page asks for; without one, the year up to the last day with figures."""
    tables = {chart.table for chart in domain_of(lake.network).charts}
    days = [day for table in tables for day in lake.snapshot.days(lake.network, table)]
    return query.of(days)


def lake_of(request: Request, network: str) -> RequestLake:
    """Return the published state of a network for a request."""
    set_network(request, network)
    return RequestLake(request, request.app.state.reader, request.app.state.settings, network)
