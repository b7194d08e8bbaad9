"""The search of all networks, and a page of charts for every network."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from permalake.domains import domain_of
from permalake.pages.overview import coin_of
from permalake.pipeline.domain import loaded
from permalake.web.daily_charts import daily_chart
from permalake.web.html import go_to, page
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.problems import ProblemError, documented
from permalake.web.published import published_state
from permalake.web.ranges import DayRange
from permalake.web.state import RequestLake, lake_of

router = page_router()
SITE = Path(__file__).parent / "site"
"""Templates of this package."""


class RangeOptions(PageOptions, DayRange):
    """Parameters of a page over a range of days."""


class SearchOptions(PageOptions):
    """Parameters of the search at the top of every page."""

    q: str = Field("", max_length=400)
    network: str = Field("", max_length=64, alias="in")


@router.get("/search", responses=documented())
def search(request: Request, query: Annotated[SearchOptions, Query()]) -> Response:
    """Go to the search of the network that was chosen, or of the first other one that finds the text."""
    published = published_state(request).networks()
    if query.network not in published:
        raise ProblemError(404, f"{query.network}: nothing of this network is published")
    others = (name for name in published if name != query.network)
    asked = (query.network, *others) if query.q.strip() else ()
    states = ((name, whole) for whole in (False, True) for name in asked)
    finding = (name for name, whole in states if _finds(request, name, query.q.strip(), with_head=whole))
    network = next(finding, query.network)
    explorer = domain_of(network).explorer
    path = f"{network}/{explorer}" if explorer else network
    return go_to(request, f"/{quote(path)}", q=query.q)


def _finds(request: Request, network: str, text: str, *, with_head: bool) -> bool:
    """Return whether the search of a network finds a text, in what is published or also in its live head."""
    state = request.app.state
    finds = domain_of(network).finds
    if finds is None or network not in state.settings.namespaces:
        return False
    request.state.whole = state.reader.heads.whole(network) if with_head else None
    if with_head and request.state.whole is None:
        return False
    return bool(loaded(finds)(RequestLake(request, state.reader, state.settings, network), text))


@router.get("/{network}", responses=documented())
def network_page(request: Request, network: str, query: Annotated[RangeOptions, Query()]) -> Response:
    """Show charts of a network's daily analytics over a range of days."""
    if network not in published_state(request).networks():
        raise ProblemError(404, "no such route")
    lake = lake_of(request, network)
    first, last = days_of(lake, query)
    coin = coin_of(lake)
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
