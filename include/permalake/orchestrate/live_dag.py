"""Declarations of the DAGs that follow networks live."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param

from permalake.config import load_settings
from permalake.errors import PermalakeError
from permalake.lake.owner import owning
from permalake.orchestrate.alerts import on_timeout
from permalake.orchestrate.connections import store_variables
from permalake.orchestrate.dag import FIRST_DAY, POLICIES
from permalake.orchestrate.step_task import failure, failure_of
from permalake.orchestrate.submit_task import SubmitOperator
from permalake.pipeline.domain import Domain

HOURS = 6
"""The time that a run follows its network; then the next one goes on, with the code and settings of then."""
MOST_FAILED_RUNS = 3
"""The number of runs that may fail in a row before the DAG is paused again."""


class LiveStep(SubmitOperator):
    """Submits the job that follows a network, for :data:`HOURS`."""

    def __init__(self, *, domain: Domain, **kwargs: Any) -> None:
        super().__init__(name=f"permalake-{domain.name}-live", **kwargs)
        self.domain = domain

    def execute(self, context: Any) -> str:  # type: ignore[override]
        """Submit and wait; return the network."""
        from permalake.pipeline import live
        from permalake.pipeline.execution import died

        try:
            # A job that went on without its task would keep the network from the next try.
            with owning(), store_variables(self.domain):
                settings = load_settings()
                network = live.chosen(settings, self.domain, context["params"]["network"] or None)
                seconds = timedelta(hours=HOURS).total_seconds()
                order = live.LiveOrder(network, context["run_id"], seconds=seconds)
                end = self.submit(live.submission(order), context)
        except PermalakeError as error:
            raise failure(error) from None
        if end.code:
            raise failure_of(died(end))
        return network


def live_dag(domain: Domain, *, doc: str, tags: list[str]) -> DAG:
    """Return the DAG ``{domain}_live``: one run at a time, the next one as soon as it ends.

    It is paused until somebody who has configured a node unpauses it, and again once :data:`MOST_FAILED_RUNS`
    have failed in a row: what cannot start would be tried again every few seconds. It takes no slot of the
    builds' pool.
    """
    with DAG(
        f"{domain.name}_live",
        description=doc.strip().splitlines()[0],
        doc_md=doc,
        schedule="@continuous",
        start_date=FIRST_DAY,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=True,
        max_consecutive_failed_dag_runs=MOST_FAILED_RUNS,
        dagrun_timeout=timedelta(hours=2 * HOURS),
        on_failure_callback=on_timeout,
        default_args=POLICIES | {"pool": "default_pool"},
        params={
            "network": Param(
                None,
                type=["null", "string"],
                title="Network",
                description="Which one to follow; empty: the first one that can be followed.",
            )
        },
        tags=["permalake", "live", *tags],
    ) as dag:
        LiveStep(
            domain=domain,
            task_id="follow",
            doc_md="Proves and decodes what is new, batch by batch, and adds it to the network's live head. "
            "The log has a line per batch, with its lag.",
            execution_timeout=timedelta(hours=HOURS + 1),
        )
    return dag
