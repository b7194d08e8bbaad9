"""Declarations of the DAG ``lake_maintenance``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable, Param, TriggerRule
from airflow.sdk.exceptions import AirflowSkipException

from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.orchestrate.alerts import on_timeout
from permalake.orchestrate.dag import FIRST_DAY, POLICIES
from permalake.orchestrate.step_task import failure, failure_of
from permalake.orchestrate.submit_task import SubmitOperator

JOB = "lake_maintenance"
"""Name of the DAG and of its Spark job."""


class CompactStep(SubmitOperator):
    """Submits the compaction of every network that has days in too many files; skipped when none has."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(name=f"permalake-{JOB}", **kwargs)

    def execute(self, context: Any) -> list[str]:  # type: ignore[override]
        """Look, submit, wait; returns the networks concerned."""
        from permalake.pipeline import maintenance
        from permalake.pipeline.execution import died

        try:
            settings = load_settings()
            networks = maintenance.chosen(settings, context["params"]["network"] or None)
            fragmented = maintenance.fragmented_networks(settings, domain_of, networks)
            if not fragmented:
                raise AirflowSkipException("no day lies in too many files")
            end = self.submit(maintenance.submission(fragmented, context["run_id"]), context)
        except PermalakeError as error:
            raise failure(error) from None
        if end.code:
            raise failure_of(died(end))
        return fragmented


class TidyStep(BaseOperator):
    """Expires snapshots, forgets states beyond the retention and removes what nobody needs."""

    def execute(self, context: Any) -> dict[str, str]:
        """Maintain the networks; return what was done, by table."""
        from permalake.pipeline import maintenance

        counts = {}
        try:
            settings = load_settings()
            networks = maintenance.chosen(settings, context["params"]["network"] or None)
            for done in maintenance.housekeeping(settings, domain_of, networks, context["run_id"]):
                self.log.info("%s", done)
                if done.anything:
                    counts[done.name] = str(done)
        except PermalakeError as error:
            raise failure(error) from None
        return counts


def maintenance_dag(*, doc: str) -> DAG:
    """Daily, when the night's builds are done; one run at a time."""
    return DAG(
        JOB,
        description=doc.strip().splitlines()[0],
        doc_md=doc,
        schedule=CronDataIntervalTimetable("0 9 * * *", timezone="UTC"),
        start_date=FIRST_DAY,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=timedelta(hours=12),
        on_failure_callback=on_timeout,
        default_args=POLICIES,
        params={
            "network": Param(
                None,
                type=["null", "string"],
                title="Network",
                description="Which network to maintain; empty: all that the lake holds.",
            )
        },
        tags=["permalake", "maintenance"],
    )


def compact_step(*, doc: str) -> CompactStep:
    """Return the task of the Spark submit that compacts."""
    return CompactStep(task_id="compact", doc_md=doc, execution_timeout=timedelta(hours=6))


def tidy_step(*, doc: str) -> TidyStep:
    """Catalog and file work, which runs whether or not something was compacted."""
    return TidyStep(
        task_id="tidy",
        doc_md=doc,
        trigger_rule=TriggerRule.NONE_FAILED,
        execution_timeout=timedelta(hours=6),
    )
