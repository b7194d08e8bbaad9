"""Runs that Airflow starts for stale days."""

from __future__ import annotations

from datetime import date
from typing import Any

from permalake.config import Settings
from permalake.lake import Lake
from permalake.orchestrate.network_runs import start_run, type_of
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.stale_days import oldest_stale

_PREFIX = "stale_"
_TURNS = 3
"""How often one backfill has the same days built again."""
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
    another while some are left; its id. What fails starts none. Days that another run made stale while they
    were built again (a failed day that was cleared meanwhile) are begun with anew, a few times at most."""
    run, task = context["dag_run"], context["ti"]
    if type_of(run) != "backfill" and not run.run_id.startswith(_PREFIX):
        return None
    if task.get_ti_count(task.dag_id, task_ids=["publish"], states=_UNFINISHED):
        return None
    found = oldest_stale(Lake(settings), request.network)
    if found is None:
        return None
    origin, _, begun = run.run_id.removeprefix(f"{_PREFIX}{request.network}_").partition("~")
    day, _, turn = begun.partition("~")
    turns = int(turn or 1) + 1 if day == str(found[0]) else 1
    if turns > _TURNS:
        return None
    name = f"{origin}~{found[0]}" + (f"~{turns}" if turns > 1 else "")
    return _start(context, request.network, found, name)


def _start(context: Any, network: str, days: tuple[date, date] | None, name: str) -> str | None:
    if days is None:
        return None
    run_id = f"{_PREFIX}{network}_{name}"
    conf = {"network": network, "start": str(days[0]), "end": str(days[1])}
    return run_id if start_run(context["ti"].dag_id, run_id, conf) else None
