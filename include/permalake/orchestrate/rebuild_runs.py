"""Runs that Airflow starts for stale days."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from permalake.contracts.steps import PUBLISH
from permalake.orchestrate.network_runs import start_run, type_of
from permalake.pipeline.request import BuildRequest, run_name

if TYPE_CHECKING:
    from permalake.lake import Reader

REBUILD = "permalake_rebuild"
"""Key of a run's conf: it rebuilds stale days. Its value holds ``origin`` (the run that asked for it),
``first`` (the first stale day) and ``turn`` (how often that run asked for that day)."""
_TURNS = 3
"""The number of times that one backfill has the same days built again."""
_UNFINISHED = [
    *("null", "scheduled", "queued", "running", "restarting"),
    *("up_for_retry", "up_for_reschedule", "deferred"),
]


def start_stale(reader: Reader, context: Any, request: BuildRequest) -> str | None:
    """Start a run of the same DAG for the oldest stale days of the network; return its id.

    Only scheduled runs start one, so that days that cannot be built are not tried without end.
    """
    from permalake.pipeline.stale_days import oldest_stale

    run = context["dag_run"]
    if type_of(run) != "scheduled":
        return None
    span = oldest_stale(reader, request.network, beside=(request.start, request.end))
    return _start(context, request.network, span, run.run_id, 1)


def follow_up(reader: Reader, context: Any, request: BuildRequest) -> str | None:
    """Start a run for days that were published before their turn; return its id.

    The last run of a backfill to publish starts it, and that one another while some are left. What fails
    starts none. Days that another run made stale while they were rebuilt (a failed day that was cleared
    meanwhile) are begun with anew, a few times at most.
    """
    from permalake.pipeline.stale_days import oldest_stale

    run, task = context["dag_run"], context["ti"]
    earlier = (run.conf or {}).get(REBUILD)
    if type_of(run) != "backfill" and not earlier:
        return None
    if task.get_ti_count(task.dag_id, task_ids=[PUBLISH], states=_UNFINISHED):
        return None
    span = oldest_stale(reader, request.network)
    if span is None:
        return None
    origin, turn = run.run_id, 1
    if earlier:
        origin = earlier["origin"]
        turn = earlier["turn"] + 1 if earlier["first"] == str(span[0]) else 1
    if turn > _TURNS:
        return None
    return _start(context, request.network, span, origin, turn)


def _start(context: Any, network: str, days: tuple[date, date] | None, origin: str, turn: int) -> str | None:
    """Start a run whose id follows from what is built for whom, so that the same is not started twice."""
    if days is None:
        return None
    first, last = map(str, days)
    run_id = f"{run_name(network, first, last)}__stale~{origin}" + (f"~{turn}" if turn > 1 else "")
    rebuild = {"origin": origin, "first": first, "turn": turn}
    conf = {"network": network, "start": first, "end": last, REBUILD: rebuild}
    return run_id if start_run(context["ti"].dag_id, run_id, conf) else None
