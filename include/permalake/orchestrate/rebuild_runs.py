"""Runs that Airflow starts for stale days."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Any

from permalake.contracts.steps import PUBLISH
from permalake.orchestrate.network_runs import BACKFILL, SCHEDULED, start_run, type_of
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

    Only scheduled runs, and those that they start for other networks, start one, so that days that cannot be
    built are not tried without end.
    """
    from permalake.pipeline.stale_days import oldest_stale

    run = context["dag_run"]
    if type_of(run) != "scheduled" and not (run.conf or {}).get(SCHEDULED):
        return None
    span = oldest_stale(reader, request.network, beside=(request.start, request.end))
    return _start(context, request.network, span, run.run_id, (1,))


def follow_up(reader: Reader, context: Any, request: BuildRequest, networks: Iterable[str]) -> list[str]:
    """Start a run for days that were published before their turn, of each network; return their ids.

    The last run of a backfill to publish starts them, whichever network it is of, and the last of those
    others while some are left. What fails starts none. Days that another run made stale while they were
    rebuilt (a failed day that was cleared meanwhile) are begun with anew, a few times at most. ``networks``:
    those that a backfill is for, beside the request's own.
    """
    from permalake.pipeline.stale_days import oldest_stale

    run, task = context["dag_run"], context["ti"]
    conf = run.conf or {}
    earlier = conf.get(REBUILD)
    if type_of(run) != "backfill" and not conf.get(BACKFILL) and not earlier:
        return []
    if task.get_ti_count(task.dag_id, task_ids=[PUBLISH], states=_UNFINISHED):
        return []
    origin = earlier["origin"] if earlier else run.run_id
    started = []
    for network in dict.fromkeys((request.network, *networks)):
        span = oldest_stale(reader, network)
        # Which turn it is of another network is seen by the runs that are there.
        turns: Iterable[int] = range(1, _TURNS + 1)
        if network == request.network:
            turn = 1
            if earlier and span and earlier["first"] == str(span[0]):
                turn = earlier["turn"] + 1
            turns = (turn,) if turn <= _TURNS else ()
        if run_id := _start(context, network, span, origin, turns):
            started.append(run_id)
    return started


def _start(
    context: Any, network: str, days: tuple[date, date] | None, origin: str, turns: Iterable[int]
) -> str | None:
    """Start a run for the first of ``turns`` that has none.

    Its id follows from what is built for whom, so that the same is not started twice.
    """
    if days is None:
        return None
    first, last = map(str, days)
    for turn in turns:
        run_id = f"{run_name(network, first, last)}__stale~{origin}" + (f"~{turn}" if turn > 1 else "")
        rebuild = {"origin": origin, "first": first, "turn": turn}
        conf = {"network": network, "start": first, "end": last, REBUILD: rebuild}
        if start_run(context["ti"].dag_id, run_id, conf):
            return run_id
    return None
