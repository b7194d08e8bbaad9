"""What the DAG files declare with: a daily DAG with the project's policies, and its kinds of task."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, Param, TriggerRule

from permalake.orchestrate.alerts import on_failure
from permalake.orchestrate.deadline import deadline
from permalake.orchestrate.publish_task import PublishStep
from permalake.orchestrate.serve_task import ServeStep
from permalake.orchestrate.submit_task import SparkStep
from permalake.pipeline.domain import POOL, SERVE, TASKS, dag_id, steps

# Days before this one have no data anywhere; runs by hand may still name them (governance VAAs of 1970).
FIRST_DAY = datetime(2018, 1, 1, tzinfo=UTC)

POLICIES: dict[str, Any] = {
    "owner": "permalake",
    "pool": POOL,
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=30),
    "on_failure_callback": on_failure,
}


def params(kind: str) -> dict[str, Param]:
    """The form of a run by hand; a scheduled run leaves everything out."""
    network: dict[str, Any] = {
        "description": "Which one to build; empty: the only one, or all in scheduled runs and backfills."
    }
    if kind == "wormhole":
        network = {"description": "Always wormhole.", "enum": [None, "wormhole"]}
    day: dict[str, Any] = {"type": ["null", "string"], "format": "date"}
    return {
        "network": Param(None, type=["null", "string"], title="Network", section="What", **network),
        "start": Param(
            None,
            title="First day (UTC)",
            section="What",
            **day,
            description="Empty: the day of the run's interval.",
        ),
        "end": Param(
            None,
            title="Last day (UTC)",
            section="What",
            **day,
            description="Inclusive; empty: the first day alone.",
        ),
        "only": Param(
            None,
            type=["null", "string"],
            enum=[None, *steps(kind)],
            title="Start at step",
            section="How",
            description="Leave earlier steps as they are, start here and go on to the end.",
        ),
        "force": Param(
            False,
            type="boolean",
            title="Force",
            section="How",
            description="Build although these days are published and their inputs have not changed.",
        ),
    }


def daily_dag(kind: str, *, doc: str, tags: Iterable[str]) -> DAG:
    """The DAG ``{kind}_daily``: one UTC day per run at midnight, or a range by parameters."""
    return DAG(
        dag_id(kind),
        description=doc.strip().splitlines()[0],
        doc_md=doc,
        schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
        start_date=FIRST_DAY,
        catchup=False,
        max_active_runs=4,
        dagrun_timeout=timedelta(hours=24),
        deadline=deadline(),
        default_args=POLICIES,
        params=params(kind),
        tags=["permalake", *tags],
        render_template_as_native_obj=False,
    )


def spark_step(kind: str, task: str, *, job: str, doc: str, hours: float = 6) -> SparkStep:
    """A task that is one Spark submit: ``spark/{job}.py`` for the run's network and days."""
    return SparkStep(
        kind=kind,
        job=job,
        first=task == TASKS[kind][0],
        task_id=task,
        doc_md=doc,
        inlets=[raw_input(kind)] if task == TASKS[kind][0] else [],
        execution_timeout=timedelta(hours=hours),
    )


def publish_step(kind: str, *, doc: str) -> PublishStep:
    """The task that publishes the audited days; its asset lets other DAGs run on a published day."""
    return PublishStep(
        kind=kind,
        task_id="publish",
        doc_md=doc,
        outlets=[published_day(kind)],
        execution_timeout=timedelta(hours=1),
    )


def serve_step(kind: str, *, doc: str) -> ServeStep:
    """The task that gives the stores what is published. It also runs when nothing had to be built: a store
    may have missed days. Its retries span half an hour, the time of a store's restart or upgrade."""
    return ServeStep(
        kind=kind,
        job="serve",
        task_id=SERVE,
        doc_md=doc,
        inlets=[published_day(kind)],
        outlets=[served_day(kind)],
        trigger_rule=TriggerRule.NONE_FAILED,
        retries=5,
        execution_timeout=timedelta(hours=6),
    )


def published_day(kind: str) -> Asset:
    """The asset that changes whenever days of this kind are published; its extra says network and days."""
    return Asset(name=f"{kind}_published_day", uri=f"permalake://published/{kind}", group="permalake")


def raw_input(kind: str) -> Asset:
    """What days of this kind are built from: archives, nodes, services."""
    return Asset(name=f"{kind}_raw", uri=f"permalake://raw/{kind}", group="permalake")


def served_day(kind: str) -> Asset:
    """The asset that changes whenever a store was given days of this kind."""
    return Asset(name=f"{kind}_served_day", uri=f"permalake://served/{kind}", group="permalake")
