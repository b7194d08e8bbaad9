"""The state of a day, and months of days for a calendar."""

from __future__ import annotations

import calendar
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from permalake.lake import DayStatus, carried_until
from permalake.lake.status import NO_TIME
from permalake.sanitize import shown

Name = Literal["failed", "stale", "gap", "waiting", "published", "audited", "built", "missing", "none"]
_STORE_BEHIND = "a store does not have it yet"
_REASON = 200
"""Characters of a reason in a tooltip."""


@dataclass(frozen=True)
class DayState:
    """A state of a day, shown by a mark and a word, never by colour alone."""

    name: Name
    mark: str
    word: str
    meaning: str


STATES: dict[Name, DayState] = {
    state.name: state
    for state in (
        DayState("published", "✓", "published", "readers and all stores have the day"),
        DayState("waiting", "↻", "stores behind", f"published; {_STORE_BEHIND}"),
        DayState("gap", "≠", "gap", "published; something is missing before it or in its source"),
        DayState("stale", "~", "stale", "published; its input has changed since"),
        DayState(
            "failed",
            "✗",
            "failed",
            "failed its audit or has invalid input; readers keep the last good state",
        ),
        DayState("audited", "◑", "audited", "passed its audit, not published yet"),
        DayState("built", "○", "built", "staged, not audited yet"),
        DayState("missing", "?", "missing", "never built, between days that were"),
        DayState("none", "", "nothing", "no run has built it"),
    )
}


UNTIMED = "messages whose body tells no time"
"""The words for the day :data:`NO_TIME`."""


@dataclass(frozen=True)
class Cell:
    """A day of a calendar; ``status`` is None where the lake knows nothing of it."""

    date: date
    state: DayState
    status: DayStatus | None = None

    @property
    def tooltip(self) -> str:
        """Date and state, then rows, inputs in quarantine, and why the day is not as it should be."""
        parts = [f"{self.date}: {self.state.word}"]
        parts += [UNTIMED] if self.date == NO_TIME else []
        if self.status:
            rows = sum(self.status.rows.values())
            parts += [f"{rows:,} rows"] if rows else []
            parts += [f"{self.status.quarantined:,} in quarantine"] if self.status.quarantined else []
            parts += [shown(reason, _REASON)] if (reason := reason_of(self.status)) else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Month:
    """Weeks from Monday to Sunday; None before the first and after the last of the month."""

    first: date
    weeks: tuple[tuple[Cell | None, ...], ...]

    @property
    def title(self) -> str:
        """``September 2022``."""
        return f"{self.first:%B %Y}"


def reason_of(day: DayStatus) -> str:
    """Return why a day is not as it should be; empty where nothing but a store is behind."""
    return day.error or day.stale or "; ".join(day.gaps)


def trouble_of(day: DayStatus) -> str:
    """Return why a day needs somebody: its reason, or that a store is behind."""
    return reason_of(day) or _STORE_BEHIND


def state_of(day: DayStatus, stores: Collection[str] = ()) -> DayState:
    """Return the most urgent state of a day; ``stores`` are those configured for the network."""
    if day.error:
        return STATES["failed"]
    if not day.published:
        return STATES["audited" if day.audited == "passed" else "built"]
    if day.stale:
        return STATES["stale"]
    if day.gaps:
        return STATES["gap"]
    if any(not day.stores.get(store) for store in stores):
        return STATES["waiting"]
    return STATES["published"]


def needs_somebody(state: DayState) -> bool:
    """Return whether a day of this state is neither published everywhere nor on its way there."""
    return state.name not in {"published", "audited", "built"}


def months(
    days: Sequence[DayStatus], stores: Collection[str] = (), most: int | None = None
) -> tuple[list[Month], int]:
    """Return the newest months with a day, and how many more there are.

    Months to come hold synthetic days and stand last.

    Args:
        days: Days of one network.
        stores: Names of the stores that are configured for it.
        most: Number of months to return; all without it.
    """
    by_date = {day.date: day for day in days}
    published = [day.date for day in days if day.published]
    span = (min(published), max(published)) if published else (date.max, date.min)
    today = datetime.now(UTC).date()
    firsts = sorted(
        {day.replace(day=1) for day in by_date}, key=lambda first: (first <= today, first), reverse=True
    )
    shown = firsts[:most]
    return [_month(first, by_date, span, stores) for first in shown], len(firsts) - len(shown)


def _month(
    first: date, by_date: dict[date, DayStatus], span: tuple[date, date], stores: Collection[str]
) -> Month:
    def cell(number: int) -> Cell | None:
        if number == 0:
            return None
        day = first.replace(day=number)
        if day in by_date:
            return Cell(day, state_of(by_date[day], stores), by_date[day])
        return Cell(day, STATES["missing" if span[0] < day < span[1] else "none"])

    weeks = calendar.monthcalendar(first.year, first.month)
    return Month(first, tuple(tuple(cell(number) for number in week) for week in weeks))


@dataclass(frozen=True)
class Freshness:
    """The latest day of a network that is over and has published rows, and the seconds since then."""

    network: str
    latest: date
    carried: date | None
    """Day up to which the carried tables are there."""
    end: datetime
    """End of the latest day."""
    seconds: float


def freshness(days: Iterable[DayStatus], now: datetime | None = None) -> list[Freshness]:
    """Return the freshness of every network that has a published day with rows before ``now``.

    Days to come, such as synthetic ones, and days without rows say nothing of how fresh a network is.
    """
    moment = now or datetime.now(UTC)
    by_network: dict[str, list[DayStatus]] = {}
    for day in days:
        by_network.setdefault(day.network, []).append(day)
    values = []
    for network, days_of_network in sorted(by_network.items()):
        filled = [day.date for day in days_of_network if day.published and day.rows]
        over = [day for day in filled if day < moment.date()]
        if over:
            end = datetime.combine(max(over) + timedelta(1), datetime.min.time(), UTC)
            age = (moment - end).total_seconds()
            values.append(Freshness(network, max(over), carried_until(days_of_network), end, age))
    return values
