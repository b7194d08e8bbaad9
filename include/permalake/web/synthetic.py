"""Days that cannot be real: those after today. The demo publishes some, so that pages have more to show."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any, TypedDict

from permalake.lake.serving import LakeSnapshot
from permalake.lake.status import NO_TIME


def is_synthetic(day: date) -> bool:
    """Return whether a day is after today, so that what it holds is made up."""
    return day > datetime.now(UTC).date()


class DaySpans(TypedDict):
    """The range of real days and that of synthetic ones, null where there are none, each end inclusive.

    ``untimed``: whether there are messages without a time too; their day is part of neither.
    """

    real_first: str | None
    real_last: str | None
    synthetic_first: str | None
    synthetic_last: str | None
    untimed: bool


def spans_of(days: Iterable[date]) -> DaySpans:
    """Return the ranges of days, so that nobody takes a made-up day for the end of a history."""
    listed = set(days)
    made_up = {day for day in listed if is_synthetic(day)}
    real = listed - made_up - {NO_TIME}
    return {
        "real_first": iso(min(real, default=None)),
        "real_last": iso(max(real, default=None)),
        "synthetic_first": iso(min(made_up, default=None)),
        "synthetic_last": iso(max(made_up, default=None)),
        "untimed": NO_TIME in listed,
    }


def iso(day: date | None) -> str | None:
    """Return a day as text; None of none."""
    return day.isoformat() if day else None


def synthetic_days(snapshot: LakeSnapshot, network: str | None = None) -> list[dict[str, Any]]:
    """Return first, last and number of the days after today, for each network that has some.

    ``is_everything``: the network has no other days.

    Args:
        snapshot: The published state.
        network: The only network to look at; None for all.
    """
    return [
        {
            "network": name,
            "first": days[0].isoformat(),
            "last": days[-1].isoformat(),
            "days": len(days),
            "is_everything": is_everything,
        }
        for name, (days, is_everything) in sorted(_days(snapshot).items())
        if network in (None, name)
    ]


def built_days(snapshot: LakeSnapshot, network: str) -> set[date]:
    """Return the days of a network's tables that are built by day; a quote may be of the day after them."""
    return {
        file.day
        for (name, _), table in snapshot.tables.items()
        if name == network and table.contract.commit == "day"
        for file in table.files
    }


def _days(snapshot: LakeSnapshot) -> dict[str, tuple[list[date], bool]]:
    today = datetime.now(UTC).date()
    key = ("synthetic", today.isoformat())
    if key not in snapshot.memory:
        built = {network: built_days(snapshot, network) for network in snapshot.networks()}
        later = {network: sorted(day for day in days if day > today) for network, days in built.items()}
        snapshot.memory[key] = {
            network: (days, len(days) == len(built[network])) for network, days in later.items() if days
        }
    by_network: dict[str, tuple[list[date], bool]] = snapshot.memory[key]
    return by_network
