"""A domain's declaration of a day as an Airflow DAG, with the project's policies."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule, chain

from permalake.contracts.steps import AFTER_PUBLICATION, WAIT, Step
from permalake.orchestrate import assets
from permalake.orchestrate.alerts import on_failure, on_timeout
from permalake.orchestrate.deadline import deadline
from permalake.orchestrate.step_task import InTaskStep
from permalake.orchestrate.store_sensor import StoreSensor
from permalake.orchestrate.submit_task import SparkStep
from permalake.orchestrate.timetable import UtcDays
from permalake.pipeline.domain import POOL, Domain

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


def params(domain: Domain) -> dict[str, Param]:
    """Return the form of a run by hand; a scheduled run leaves everything out."""
    # Airflow's form shows parameters without a section; it folds those of any section away.
    network: dict[str, Any] = {
        "description": "Which one to build; empty: the scheduled one, or all of those in scheduled runs and "
        "backfills."
    }
    if domain.namespace:
        network = {"description": f"Always {domain.namespace}.", "enum": [None, domain.namespace]}
    day: dict[str, Any] = {"type": ["null", "string"], "format": "date"}
    return {
        "network": Param(None, type=["null", "string"], title="Network", **network),
        "start": Param(
            None,
            title="First day (UTC)",
            **day,
            description="Empty: the day of the run's interval; without one, the day before it was triggered.",
        ),
        "end": Param(
            None,
            title="Last day (UTC)",
            **day,
            description="Inclusive; empty: the first day alone.",
        ),
        "only": Param(
            None,
            type=["null", "string"],
            enum=[None, *domain.phases],
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
        "stored": Param(
            False,
            type="boolean",
            title="Stored answers only",
            section="How",
            description="Wormhole: ask no service for prices, chain details, redemptions and custody.",
        ),
    }


def daily_dag(domain: Domain, *, doc: str, tags: Iterable[str] = ()) -> DAG:
    """Return the DAG ``{domain}_daily`` with a task per step.

    A scheduled run builds one UTC day at midnight; a run by hand builds a range that its parameters give.
    """
    with DAG(
        domain.dag_id,
        description=doc.strip().splitlines()[0],
        doc_md=doc,
        schedule=UtcDays(domain.name),
        start_date=FIRST_DAY,
        catchup=False,
        max_active_runs=4,
        dagrun_timeout=timedelta(hours=24),
        on_failure_callback=on_timeout,
        deadline=deadline(),
        default_args=POLICIES,
        params=params(domain),
        tags=["permalake", *tags],
        render_template_as_native_obj=False,
    ) as dag:
        chain(*(_task(domain, step) for step in domain.steps))
    return dag


def _task(domain: Domain, step: Step) -> SparkStep | InTaskStep | StoreSensor:
    operator, timeout = _operator(step)
    return operator(
        domain=domain,
        step=step,
        doc_md=step.doc,
        trigger_rule=TriggerRule.NONE_FAILED if step.name in AFTER_PUBLICATION else TriggerRule.ALL_SUCCESS,
        execution_timeout=timeout,
        **assets.of_task(domain, step),
    )


def _operator(step: Step) -> tuple[type[SparkStep | InTaskStep | StoreSensor], timedelta]:
    """Return the kind of task that a step is, and how long it may take."""
    if step.name == WAIT:
        return StoreSensor, timedelta(minutes=15)
    return (InTaskStep, timedelta(hours=1)) if step.job is None else (SparkStep, timedelta(hours=6))
