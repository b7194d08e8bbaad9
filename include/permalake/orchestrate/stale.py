"""Stale days are built again beside a run's own: before them on the command line, as a run of their own under
a scheduler."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from permalake.config import Settings
from permalake.lake import Lake
from permalake.orchestrate.request import BuildRequest
from permalake.spans import ranges

MOST_STALE_DAYS = 31
"""Days in a row that one run builds again."""


def stale_before(lake: Lake, network: str, start: date, end: date) -> tuple[date, date] | None:
    """The oldest stale days in a row, at most :data:`MOST_STALE_DAYS`, that do not lie in start..end: those
    are built anyway."""
    days = [
        day
        for first, last in lake.stale(network)
        for number in range((last - first).days + 1)
        if not start <= (day := first + timedelta(days=number)) <= end
    ]
    if not days:
        return None
    first, last = ranges(days)[0]
    return first, min(last, first + timedelta(days=MOST_STALE_DAYS - 1))


def start_stale(settings: Settings, context: Any, request: BuildRequest) -> str | None:
    """A scheduled run starts one of the same DAG for the oldest stale days of its network; its id. Runs by
    hand start none, so that days that cannot be built are not tried without end."""
    from permalake.orchestrate.siblings import start_run, type_of

    run = context["dag_run"]
    if type_of(run) != "scheduled":
        return None
    found = stale_before(Lake(settings), request.network, request.start, request.end)
    if found is None:
        return None
    conf = {"network": request.network, "start": str(found[0]), "end": str(found[1])}
    run_id = f"stale_{request.network}_{run.run_id}"
    return run_id if start_run(context["ti"].dag_id, run_id, conf) else None
