"""The DAG task of a step without a Spark job, such as publish: plain Python, no JVM."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator

from permalake.contracts.steps import Step
from permalake.orchestrate.step_task import StepTask, no_submit
from permalake.pipeline.domain import Domain


class InTaskStep(StepTask, BaseOperator):
    """A step whose body runs in the task itself.

    It fails when its result is not ``done``: publish names the withheld days, each with its reason.
    """

    def __init__(self, *, domain: Domain, step: Step, **kwargs: Any) -> None:
        super().__init__(task_id=step.name, **kwargs)
        self.domain = domain
        self.step = step

    def execute(self, context: Any) -> dict[str, Any] | None:
        """Run the step; return network, days and rows by table."""
        return self.run_step(context, no_submit)
