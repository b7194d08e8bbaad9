"""Days that cannot be real: those after today. The demo publishes two of them, so that pages can show USD."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from permalake.lake.serving import LakeSnapshot


def is_synthetic(day: date) -> bool:
    """Return whether a day is after today, so that what it holds is made up."""
    return day > datetime.now(UTC).date()


def synthetic_days(snapshot: LakeSnapshot, network: str | None = None) -> list[dict[str, Any]]:
    """Return first, last and number of the days after today, for each network that has some.

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
        }
        for name, days in sorted(_days(snapshot).items())
        if network in (None, name)
    ]


def _days(snapshot: LakeSnapshot) -> dict[str, list[date]]:
    today = datetime.now(UTC).date()
    key = ("synthetic", today.isoformat())
    if key not in snapshot.memory:
        by_network: dict[str, set[date]] = {}
        for (network, _), table in snapshot.tables.items():
            if table.contract.commit != "day":
                continue  # a quote may be of the day after the transfer
            if later := {file.day for file in table.files if file.day > today}:
                by_network.setdefault(network, set()).update(later)
        snapshot.memory[key] = {network: sorted(days) for network, days in by_network.items()}
    days: dict[str, list[date]] = snapshot.memory[key]
    return days
