"""The note of every run of a daily DAG: network, days, rows and outcome.

Airflow calls these hooks in its scheduler, and in its server where somebody marks a run. They read what the
tasks reported (:mod:`permalake.orchestrate.task_reports`) from Airflow's own database alone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from permalake.config import load_settings
from permalake.contracts.steps import CARRY, PUBLISH, SERVE
from permalake.domains import DOMAINS
from permalake.errors import PermalakeError
from permalake.orchestrate.alerts import TIMED_OUT
from permalake.orchestrate.context import request_from
from permalake.orchestrate.task_reports import REPORT, TaskReport
from permalake.pipeline.domain import Domain
from permalake.sanitize import shown

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

log = logging.getLogger(__name__)
LONGEST = 1000
"""Characters that Airflow stores of a note."""
_OURS = re.compile(r"([a-z][a-z0-9_-]* \d{4}-\d\d-\d\d(\.\.\d{4}-\d\d-\d\d)?|[a-z]+_daily): ")
_BY_HAND = "manually set"
"""Airflow's message to a hook when somebody marked the run."""


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The state of a run's task: Airflow's state of it, and its report of this very try."""

    step: str
    state: str
    report: TaskReport | None = None

    @property
    def outcome(self) -> str | None:
        """The task's work, if it is worth reporting."""
        return self.report["outcome"] if self.report else None

    @property
    def reason(self) -> str | None:
        """Why it failed or was skipped, in its own words."""
        return self.report["reason"] if self.report else None


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001 - Airflow gives both by name
    """Note which network and days a run is for, as soon as it runs."""
    _note(dag_run, lambda _: "running")


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:
    """Note what a run that succeeded did."""
    _note(dag_run, lambda ends: success(ends, by_hand=_BY_HAND in msg))


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Note what a run that failed did, and why it failed."""
    _note(dag_run, lambda ends: failure(ends, msg))


def success(ends: Sequence[TaskEnd], *, by_hand: bool = False) -> str:
    """Return the outcome of a run that succeeded, from its tasks in the order of their steps."""
    if by_hand:
        return "; ".join([*_outcomes(ends), f"marked as success by hand{_reached(ends)}"])
    outcomes = _outcomes(ends)
    if ends and ends[0].state == "skipped" and ends[0].reason:
        outcomes.insert(0, f"nothing to build: {ends[0].reason}")
    else:
        outcomes[:0] = [end.reason for end in ends if end.step == PUBLISH and end.reason]
    # Airflow judges a run by its last task, and may undo what somebody marked while it did.
    outcomes += [_failed(end) for end in ends if end.state == "failed"]
    return "; ".join(outcomes) or "success"


def failure(ends: Sequence[TaskEnd], msg: str) -> str:
    """Return the outcome of a run that failed; ``msg`` is what Airflow says of it."""
    if _BY_HAND in msg:
        return "; ".join([*_outcomes(ends), f"marked as failed by hand{_reached(ends)}"])
    if msg == TIMED_OUT:
        return "; ".join([*_outcomes(ends), f"failed: it took too long{_reached(ends)}"])
    failed = next((end for end in ends if end.state == "failed"), None)
    if failed is None:
        return "; ".join([*_outcomes(ends), "failed: Airflow names no failed task; see its scheduler's log"])
    return "; ".join([*_outcomes(ends), _failed(failed)])


def _failed(end: TaskEnd) -> str:
    return f"failed in {end.step}: {end.reason or 'it ended without a reason; see its log'}"


def _outcomes(ends: Sequence[TaskEnd]) -> list[str]:
    return [end.outcome for end in ends if end.step in (PUBLISH, CARRY, SERVE) and end.outcome]


def _reached(ends: Sequence[TaskEnd]) -> str:
    """Return how far the run was, by the tasks that ended by themselves."""
    reported = [end.step for end in ends if end.report]
    return f" after {reported[-1]}" if reported else " before any task reported"


def merged(note: str | None, line: str) -> str:
    """Return a run's note with our line last, instead of an earlier one; what users wrote stays before it."""
    kept = [text for text in (note or "").splitlines() if not _OURS.match(text)]
    before = "\n".join(kept).rstrip()
    room = LONGEST - len(before) - 1 if before else LONGEST
    if len(line) > room:
        line = line[: room - 1] + "…" if room > 1 else ""
    return "\n".join(part for part in (before, line) if part)


def _note(dag_run: DagRun, outcome: Callable[[Sequence[TaskEnd]], str]) -> None:
    """Write the note of a run of a daily DAG; it is stored with the run's new state.

    It never raises: Airflow would lose the change of state.
    """
    domain = next((candidate for candidate in DOMAINS if candidate.dag_id == dag_run.dag_id), None)
    if domain is None:
        return
    try:
        ends = _ends(domain, dag_run)
        line = f"{_subject(domain, dag_run, ends)}: {outcome(ends)}"
        dag_run.note = merged(dag_run.note, shown(line, LONGEST))
    except Exception:
        log.exception("the note of run %s could not be written", dag_run.run_id)


def _subject(domain: Domain, dag_run: DagRun, ends: Sequence[TaskEnd]) -> str:
    """Return network and days of a run: as its tasks had them, else as they would read them now."""
    for end in ends:
        if end.report and end.report["subject"]:
            return end.report["subject"]
    context = {
        "dag_run": dag_run,
        "run_id": dag_run.run_id,
        "params": dag_run.conf or {},
        "data_interval_start": dag_run.data_interval_start,
    }
    try:
        return request_from(load_settings(), domain, context).title
    except PermalakeError as error:
        log.info("network and days of run %s are not known: %s", dag_run.run_id, error)
        return domain.dag_id


def _ends(domain: Domain, dag_run: DagRun) -> list[TaskEnd]:
    """Return how the tasks of a run stand, in the order of the steps."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from sqlalchemy import select
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None:
        return []
    query = XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_run.dag_id, key=REPORT)
    xcoms: Iterable[Any] = session.scalars(query)
    reports = {xcom.task_id: xcom.value for xcom in xcoms}
    here = (TaskInstance.dag_id == dag_run.dag_id, TaskInstance.run_id == dag_run.run_id)
    tasks = {task.task_id: task for task in session.scalars(select(TaskInstance).where(*here))}
    return [
        TaskEnd(step.name, str(task.state), _report(reports.get(step.name), str(task.id)))
        for step in domain.steps
        if (task := tasks.get(step.name))
    ]


def _report(value: Any, attempt: str) -> TaskReport | None:
    """Return the report of this try of a task; those of earlier tries, and other values, do not count."""
    if not isinstance(value, dict) or value.get("attempt") != attempt:
        return None
    return TaskReport(
        attempt=attempt,
        subject=value.get("subject"),
        outcome=value.get("outcome"),
        reason=value.get("reason"),
    )
