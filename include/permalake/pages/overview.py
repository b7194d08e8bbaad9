"""The overview: a card per network, what needs attention, and the calendar of days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import Query, Request
from markupsafe import Markup
from pydantic import Field
from starlette.responses import Response

from permalake.config import Settings
from permalake.domains import domain_of, stores_of
from permalake.lake import DayStatus
from permalake.lake.serving import EVERYTHING
from permalake.lake.status import carried_until, status
from permalake.pages import SITE
from permalake.pages.days import STATES, DayState, months, needs_somebody, reason_of, state_of, trouble_of
from permalake.web.head import head_of
from permalake.web.html import page
from permalake.web.numbers import CoinUnit, formatted
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.parameter_types import FormNetwork
from permalake.web.problems import documented
from permalake.web.published import published_state
from permalake.web.ranges import newest_real
from permalake.web.state import RequestLake, lake_of
from permalake.web.synthetic import iso, spans_of
from permalake.web.year_strip import year_strip

router = page_router()
_MONTHS, _MONTHS_OF_ALL = 3, 8
"""Months of a network, and of all: a day takes some 250 bytes of the page."""
_YEARS, _YEARS_OF_ALL = 4, 8
"""Years of a network, and of all: one takes some 8 kB of the page."""
_TROUBLES = 30


class OverviewOptions(PageOptions):
    """Parameters of the page: one network, or all, and how many months of each."""

    network: FormNetwork = None
    months: Annotated[int | None, Field(ge=1, le=240)] = None


@router.get("/", responses=documented())
def overview(request: Request, query: Annotated[OverviewOptions, Query()]) -> Response:
    """Show a card per network, the calendar of days, and what needs attention."""
    days: dict[str, list[DayStatus]] = {}
    for day in status(request.app.state.database, query.network):
        days.setdefault(day.network, []).append(day)
    for network in published_state(request).networks() if request.app.state.reader else ():
        if query.network in (None, network):
            days.setdefault(network, [])
    settings: Settings = request.app.state.settings
    every = max(len(days), 1)
    most = query.months or max(1, min(_MONTHS, _MONTHS_OF_ALL // every)), min(_YEARS, _YEARS_OF_ALL // every)
    cards = [
        _card(request, settings, name, network_days, most) for name, network_days in sorted(days.items())
    ]
    shown = {
        "cards": cards,
        "states": [
            {"name": state.name, "mark": state.mark, "word": state.word, "meaning": state.meaning}
            for state in STATES.values()
            if state.mark
        ],
        "troubles": [trouble for card in cards for trouble in card["troubles"]][:_TROUBLES],
    }
    # A day that fails moves no publication.
    return page(request, None, "overview.html", shown, SITE)


def _card(
    request: Request, settings: Settings, network: str, days: Sequence[DayStatus], most: tuple[int, int]
) -> dict[str, Any]:
    """Return what the page shows of a network; ``most``: numbers of months and of years in its calendar."""
    stores = [store.name for store in stores_of(settings, network)]
    states = [(day, state_of(day, stores)) for day in days]
    published = [day.date for day in days if day.published]
    counts: dict[str, int] = {}
    for _, state in states:
        counts[state.word] = counts.get(state.word, 0) + 1
    return {
        "network": network,
        "last": iso(newest_real(published)),
        **spans_of(published),
        "carried": iso(carried_until(days)),
        "published": len(published),
        "quarantined": sum(day.quarantined for day in days),
        "states": counts,
        "live": _live(request, network),
        "figures": _figures(lake_of(request, network), newest_real(published))
        if request.app.state.reader
        else [],
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
                "network": network,
                "date": day.date.isoformat(),
                "state": state.name,
                "word": state.word,
                "reason": trouble_of(day),
                "codes": list(day.reasons),
            }
            for day, state in reversed(states)
            if needs_somebody(state)
        ],
        "calendar": _Calendar(*months(days, stores, most[0]), _years(states, max(1, most[1]))),
    }


def _live(request: Request, network: str) -> dict[str, Any] | None:
    """Return how far the network's live head is; it is provisional."""
    head = head_of(request, network)
    if head is None:
        return None
    return {
        "milestone": head.index,
        "time": head.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lagSeconds": round(head.lag(), 1),
        "provisional": True,
    }


class _Calendar:
    """Months and years for the template; JSON has the days instead."""

    def __init__(self, shown: Sequence[Any], more: int, years: Mapping[int, Markup]) -> None:
        self.shown = shown
        self.more = more
        self.years = years


def _years(states: Sequence[tuple[DayStatus, DayState]], most: int) -> dict[int, Markup]:
    """Return the newest years that have a day, as pictures; synthetic ones only where there are no others."""
    states_of = {day.date: (state.name, state.word) for day, state in states}
    this_year = datetime.now(UTC).year
    every = sorted({day.year for day in states_of}, key=lambda year: (year <= this_year, year), reverse=True)
    return {year: year_strip(year, states_of) for year in every[:most]}


def coin_of(lake: RequestLake) -> CoinUnit | None:
    """Return the coin in which a network's amounts are shown; None where the network is not configured."""
    configured = lake.network in lake.settings.networks
    return domain_of(lake.network).coin_of(lake.settings, lake.network) if configured else None


def _figures(lake: RequestLake, until: date | None) -> list[dict[str, Any]]:
    """Figures over all real days; over the synthetic ones where there are no others."""
    figures = []
    coin = coin_of(lake)
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
        figures.append(
            {
                "label": figure.label,
                "unit": figure.unit,
                "value": None if value is None else str(value),
                "shown": formatted(value, figure.unit, coin),
                **({"valued": row["valued"], "of": row["of"]} if figure.valued else {}),
            }
        )
    return figures
