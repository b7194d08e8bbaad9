"""The DAG task of a step without a Spark job, such as publish: plain Python, no JVM."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from permalake.contracts.steps import Step
from permalake.orchestrate import lineage
from permalake.orchestrate.step_task import StepTask, facts, failure_of
from permalake.pipeline.domain import Domain
from permalake.pipeline.progress import emit


class InTaskStep(StepTask, BaseOperator):
    """A step whose body runs in the task itself.

    It fails when its result is not ``done``: publish names the withheld days, each with its reason.
    """

    def __init__(self, *, domain: Domain, step: Step, **kwargs: Any) -> None:
        super().__init__(task_id=step.name, **kwargs)
        self.domain = domain
        self.step = step

    def execute(self, context: Any) -> dict[str, Any] | None:
        """Run the step; return network, days and rows by table. An outlet learns network and days."""
        from permalake.pipeline.jobs import run_step
        from permalake.pipeline.runs import order_of

        with self.opened(context) as (work, given):
            if self.domain.comes_before(self.step, given.only):
                reason = f"left as it is: this run starts at {given.only}"
                if (
                    self.outlets
                ):  # Done, it would make downstream DAGs run; skipped, the next task still runs.
                    raise AirflowSkipException(reason)
                self.log.info(reason)
                return None
            started = time.monotonic()
            emit("start", step=self.task_id)
            request = self.continued(work, given, context)
            starts = self.domain.is_first(self.step, request.only)
            result = None if starts else self.claimed(work, request)
            result = result or run_step(work, order_of(request), self.step)
            summary = {"network": request.network, **facts(result)}
            emit("done", step=self.task_id, seconds=time.monotonic() - started, **summary)
            for asset in self.outlets:
                context["outlet_events"][asset].extra = {
                    "network": request.network,
                    "days": summary.get("days", []),
                }
            written = lineage.tables(work.settings, request.network, result.rows)
            self._flow = written, written
            if result.state != "done":
                raise failure_of(result)
            return summary
