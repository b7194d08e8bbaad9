"""The calendar of days as an HTML page, without scripts and external resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from permalake.lake import DayStatus
from permalake.pages.days import STATES, Freshness, months, needs_somebody, state_of, trouble_of

_TEMPLATES = Path(__file__).parent
MONTHS_SHOWN = 12


def calendar_page(
    days: Mapping[str, Sequence[DayStatus]],
    stores: Mapping[str, Sequence[str]],
    fresh: Sequence[Freshness],
    *,
    only: str | None = None,
    shown: int = MONTHS_SHOWN,
) -> str:
    """Return a page with every network's latest months, freshness, and days that need attention.

    Args:
        days: Days by network.
        stores: Names of the configured stores by network.
        fresh: Freshness of the networks.
        only: The one network to show; None shows all.
        shown: Number of months per network.
    """
    networks = []
    for name, own in days.items():
        if only is not None and name != only:
            continue
        configured = stores.get(name, ())
        newest, earlier = months(own, configured, shown)
        states = [(day, state_of(day, configured)) for day in own]
        networks.append(
            {
                "name": name,
                "months": newest,
                "more": earlier,
                "fresh": next((one for one in fresh if one.network == name), None),
                "troubled": [
                    (day, state, trouble_of(day)) for day, state in reversed(states) if needs_somebody(state)
                ][:50],
            }
        )
    return render("calendar.html", networks=networks, states=STATES.values())


def day_page(day: DayStatus, stores: Sequence[str], audit: str | None) -> str:
    """Return the page of one day: its times, rows, stores and remarks; ``audit`` links its Data Docs."""
    return render(
        "day.html",
        day=day,
        state=state_of(day, stores),
        stores={name: day.stores.get(name) for name in sorted({*stores, *day.stores})},
        audit=audit,
    )


def render(template: str, **values: Any) -> str:
    """Return a template of this folder with ``values`` filled in and escaped."""
    return _environment().get_template(template).render(**values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["moment"] = lambda text: f"{text[:10]} {text[11:19]}" if text else "not yet"
    made.filters["ago"] = _ago
    return made


def _ago(seconds: float) -> str:
    """Return a duration in its largest unit that counts two or more, for example ``40 minutes``."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}s"
    return "a moment"
