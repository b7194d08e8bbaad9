"""Which tasks each DAG has and which steps each task holds. Knows no Airflow, so that the command line can
check a ``--only`` before anything heavy is loaded."""

from __future__ import annotations

from permalake.errors import ConfigError

# A task is named after the steps it holds: steps that share data share one Spark submit.
TASKS = {
    "iota": ("ingest_decode", "analytics", "audit", "publish", "serve"),
    "wormhole": ("ingest_decode", "enrich_analytics", "audit", "publish", "serve"),
}
KINDS = tuple(TASKS)
# Tasks that read what an earlier task landed for itself, besides the tables.
NEED_LANDING = {"iota": ("analytics",), "wormhole": ()}
POOL = "permalake_builds"
"""Airflow's pool of the tasks that build days."""
# The task that works on what is published, not on a staging.
SERVE = "serve"


def dag_id(kind: str) -> str:
    """Name of the DAG that builds days of this kind."""
    return f"{kind}_daily"


def steps(kind: str) -> tuple[str, ...]:
    """Every step of the DAG in order, as ``--only`` takes them."""
    return tuple(step for task in TASKS[kind] for step in task.split("_"))


def task_of(kind: str, step: str) -> str:
    """The task that holds ``step`` (a task's own name will do); :class:`ConfigError` lists the steps."""
    for task in TASKS[kind]:
        if step == task or step in task.split("_"):
            return task
    raise ConfigError(f"--only {step}: {kind} has no such step; choose one of {', '.join(steps(kind))}")


def comes_before(kind: str, task: str, only: str | None) -> bool:
    """Whether a run that starts at step ``only`` leaves ``task`` as an earlier run left it."""
    return only is not None and TASKS[kind].index(task) < TASKS[kind].index(task_of(kind, only))
