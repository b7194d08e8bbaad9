"""A task of a daily DAG: one step of a run, as Airflow sees it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    AirflowTaskTimeout,
)

from permalake.config import load_settings
from permalake.contracts.steps import SERVE, WAIT, Step, StepResult
from permalake.errors import PermalakeError
from permalake.orchestrate import assets, lineage, task_reports
from permalake.orchestrate.connections import store_variables
from permalake.orchestrate.context import adopted, request_from
from permalake.pipeline.domain import Domain
from permalake.pipeline.request import RUN_ID, BuildRequest
from permalake.spark.submit import Submission, SubmitEnd

if TYPE_CHECKING:
    from permalake.pipeline.execution import StepOutcome, Submit
    from permalake.pipeline.workspace import Workspace

log = logging.getLogger("airflow.task")
Report = dict[str, str | int | list[str] | dict[str, int]]
"""A task's report on its step, as XCom."""
_EXIT_CODE = re.compile(r"Error code is: (-?\d+)")
_OUTPUT = "Last spark-submit output:"


class StepTask:
    """Mixin of the operators: which step of which domain, and what it read and wrote."""

    domain: Domain
    step: Step
    outlets: list[Any]
    _flow: lineage.Flow | None = None
    _subject: str | None = None
    _outcome: str | None = None

    @contextmanager
    def opened(self, context: Any) -> Iterator[tuple[Workspace, BuildRequest]]:
        """Open the workspace of the run for the block, and give it with the run's request.

        A step of the stores finds in the settings what Airflow's connections say of them. The runs of other
        networks that this one stands for are started first. Whatever ends the block is one line, which says
        whether a retry may help.
        """
        from permalake.pipeline.workspace import Workspace

        is_of_stores = self.step.name in {WAIT, SERVE}
        try:
            with store_variables(self.domain) if is_of_stores else nullcontext():
                settings = load_settings()
                request = request_from(settings, self.domain, context)
                self._subject = request.title
                work = Workspace.open(settings, self.domain, request.network)
                self.start_siblings(work, request, context)
                yield work, adopted(work, request, context)
        except (AirflowException, AirflowTaskTimeout) as error:
            self.report(context, str(error))
            raise
        except Exception as error:  # noqa: BLE001 - one line for users, whatever it is
            ended = failure(error)
            self.report(context, str(ended))
            raise ended from None

    def report(self, context: Any, reason: str | None = None) -> None:
        """Leave what the note of the run says of this task; ``reason``: why it fails or is skipped."""
        task_reports.leave(context, self._subject, self._outcome, reason)

    def run_step(self, context: Any, submit: Submit) -> Report | None:
        """Execute the step; return what it did, skip or fail with the reason."""
        with self.opened(context) as (work, request):
            return self._run_step(work, request, context, submit)

    def _run_step(
        self, work: Workspace, request: BuildRequest, context: Any, submit: Submit
    ) -> Report | None:
        from permalake.pipeline.execution import execute

        if self.domain.comes_before(self.step, request.only):
            reason = f"left as it is: this run starts at {request.only}"
            if self.outlets:  # Done, it would make downstream DAGs run; skipped, the next task still runs.
                raise AirflowSkipException(reason)
            log.info(reason)
            return None
        self.prepare(work, request, context)
        outcome = execute(work, request, self.step, submit)
        if request.only and self.domain.is_first(self.step, request.only):
            context["ti"].xcom_push(RUN_ID, outcome.request.run_id)
        returned = self._xcom_report(work, outcome, context)
        self.report(context)
        return returned

    def start_siblings(self, work: Workspace, request: BuildRequest, context: Any) -> None:
        """Start the runs of other networks that this one stands for, whichever step it starts at."""

    def prepare(self, work: Workspace, request: BuildRequest, context: Any) -> None:
        """Do what an Airflow run does besides, before its step."""

    def _xcom_report(self, work: Workspace, outcome: StepOutcome, context: Any) -> Report:
        result = outcome.result
        self._flow = lineage.flow(work, self.step, result)
        self._outcome = task_reports.outcome_of(outcome.request, self.step, result)
        returned = {"network": work.network, **facts(result)}
        if self.outlets:
            assets.announce(self.domain, self.step, work.network, result, context["outlet_events"])
        if result.state == "skipped":
            raise AirflowSkipException(result.reason)
        if outcome.is_failure:
            raise failure_of(result)
        return returned

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> Any:
        """Return what the step has read and written, for OpenLineage."""
        return lineage.lineage(*(self._flow or ([], [])))


class InTaskStep(StepTask, BaseOperator):
    """A step without a Spark job, such as publish: plain Python in the task itself, no JVM.

    It fails when its result is not ``done``: publish names the withheld days, each with its reason.
    """

    def __init__(self, *, domain: Domain, step: Step, **kwargs: Any) -> None:
        super().__init__(task_id=step.name, **kwargs)
        self.domain = domain
        self.step = step

    def execute(self, context: Any) -> dict[str, Any] | None:
        """Run the step; return network, days and rows by table."""
        return self.run_step(context, no_submit)


def facts(result: StepResult) -> Report:
    """Return a task's report on its step, as XCom."""
    if result.served is not None:
        return {"served": dict(result.served)}
    if result.days is not None:
        return {"days": [str(day) for day in result.days], "rows": dict(result.rows)}
    return {"rows": dict(result.rows), "quarantined": result.quarantined}


def failure_of(result: StepResult) -> AirflowException:
    """Return the exception to fail with: one that is not retried where a retry cannot help."""
    return AirflowException(result.failure) if result.retryable else AirflowFailException(result.failure)


def failure(error: Exception) -> AirflowException:
    """Return the same for an error of the task itself."""
    from permalake.pipeline.execution import failed

    return failure_of(failed(error))


def end_of(error: AirflowException) -> SubmitEnd:
    """Return how a submit ended that failed, as Airflow's error quotes it.

    Raises:
        PermalakeError: The error has no exit code.
    """
    text = str(error)
    if code := _EXIT_CODE.search(text):
        return SubmitEnd(int(code[1]), text.partition(_OUTPUT)[2])
    raise PermalakeError((text.strip().splitlines() or ["the Spark submit failed"])[0])


def no_submit(submission: Submission) -> SubmitEnd:
    """Stand for the submit of a step that has no Spark job."""
    raise NotImplementedError(f"a step without a Spark job submitted {submission.job}")
