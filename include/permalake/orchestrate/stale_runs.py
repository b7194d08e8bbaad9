"""Runs that Airflow starts for stale days."""

from __future__ import annotations

from datetime import date
from typing import Any

from permalake.config import Settings
from permalake.lake import Lake
from permalake.orchestrate.request import BuildRequest
from permalake.orchestrate.siblings import start_run, type_of
from permalake.orchestrate.stale import oldest_stale

_PREFIX = "stale_"
_UNFINISHED = [
    *("null", "scheduled", "queued", "running", "restarting"),
    *("up_for_retry", "up_for_reschedule", "deferred"),
]


def start_stale(settings: Settings, context: Any, request: BuildRequest) -> str | None:
    """A scheduled run starts one of the same DAG for the oldest stale days of its network; its id. Runs by
    hand start none, so that days that cannot be built are not tried without end."""
    run = context["dag_run"]
    if type_of(run) != "scheduled":
        return None
    found = oldest_stale(Lake(settings), request.network, beside=(request.start, request.end))
    return _start(context, request.network, found, run.run_id)


def follow_up(settings: Settings, context: Any, request: BuildRequest) -> str | None:
    """The last run of a backfill to publish starts one for days that came before their turn, and that one
    another while some are left; its id. What fails starts none, and no days are begun with twice after one
    backfill."""
    run, task = context["dag_run"], context["ti"]
    if type_of(run) != "backfill" and not run.run_id.startswith(_PREFIX):
        return None
    if task.get_ti_count(task.dag_id, task_ids=["publish"], states=_UNFINISHED):
        return None
    found = oldest_stale(Lake(settings), request.network)
    backfill = run.run_id.removeprefix(f"{_PREFIX}{request.network}_").partition("~")[0]
    return _start(context, request.network, found, f"{backfill}~{found[0]}" if found else "")


def _start(context: Any, network: str, days: tuple[date, date] | None, name: str) -> str | None:
    if days is None:
        return None
    run_id = f"{_PREFIX}{network}_{name}"
    conf = {"network": network, "start": str(days[0]), "end": str(days[1])}
    return run_id if start_run(context["ti"].dag_id, run_id, conf) else None
