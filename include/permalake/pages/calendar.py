"""The calendar of days as an HTML page: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from permalake.lake import DayStatus
from permalake.pages.days import STATES, Freshness, months, state_of

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
    """Every network's latest months, its latest published day, and the days that need somebody.

    ``days`` and ``stores`` (the configured ones) by network; ``only`` leaves the other networks out.
    """
    networks = []
    for name, own in days.items():
        if only is not None and name != only:
            continue
        configured = stores.get(name, ())
        every = months(own, configured)
        troubled = [(day, state_of(day, configured)) for day in own]
        networks.append(
            {
                "name": name,
                "months": every[:shown],
                "more": len(every) - shown,
                "fresh": next((one for one in fresh if one.network == name), None),
                "troubled": [
                    (day, state)
                    for day, state in reversed(troubled)
                    if state.name not in ("published", "audited", "built")
                ][:50],
            }
        )
    return _render("calendar.html", networks=networks, states=STATES.values())


def day_page(day: DayStatus, stores: Sequence[str], audit: str | None) -> str:
    """One day: what was built, audited, published and stored, and what is the matter with it.

    ``audit`` is the address of its Data Docs.
    """
    return _render(
        "day.html",
        day=day,
        state=state_of(day, stores),
        stores={name: day.stores.get(name) for name in sorted({*stores, *day.stores})},
        audit=audit,
    )


def _render(template: str, **values: Any) -> str:
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
    """``40 minutes``, ``5 hours``, ``3 days``: the largest unit that is not below two."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}s"
    return "a moment"
