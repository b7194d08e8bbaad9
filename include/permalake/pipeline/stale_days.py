"""Stale days, built again beside a run's own.

On the command line they are built before the run's days, under a scheduler as a run of their own.
"""

from __future__ import annotations

from datetime import date, timedelta

from permalake.intervals import ranges
from permalake.lake import Reader
from permalake.pipeline.workspace import Workspace

MOST_STALE_DAYS = 31
"""Days in a row that one run builds again."""


def mark_continued(work: Workspace) -> None:
    """Mark published days stale whose source ended inside them and goes on now."""
    days = {day.date: day for day in work.reader.status(work.network) if day.published}
    for day, reason in work.inputs.continued({day.date: day.notes for day in days.values()}).items():
        if reason not in (days[day].stale or ""):
            work.builds.mark_stale(work.network, [day], reason)


def oldest_stale(
    reader: Reader, network: str, beside: tuple[date, date] | None = None
) -> tuple[date, date] | None:
    """Return the oldest stale days in a row, at most :data:`MOST_STALE_DAYS`.

    Days of ``beside`` (first and last) are left out: they are built anyway.
    """
    days = [
        day
        for first, last in reader.stale(network)
        for day in (first + timedelta(days=number) for number in range((last - first).days + 1))
        if beside is None or not beside[0] <= day <= beside[1]
    ]
    if not days:
        return None
    first, last = ranges(days)[0]
    return first, min(last, first + timedelta(days=MOST_STALE_DAYS - 1))
