"""A DAG task that is one Spark submit, or that claims what an earlier submit of its run has done."""

from __future__ import annotations

from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from permalake.contracts.steps import SERVE, Step
from permalake.orchestrate.network_runs import names_no_network, scheduled_networks, start_others, type_of
from permalake.orchestrate.rebuild_runs import follow_up, start_stale
from permalake.orchestrate.step_task import StepTask, end_of
from permalake.pipeline.domain import Domain
from permalake.pipeline.request import BuildRequest
from permalake.spark.submit import Submission, SubmitEnd, job_file, spark_environment

if TYPE_CHECKING:
    from permalake.pipeline.workspace import Workspace

_STOPPED = "permalake: Airflow stopped the task, as where its run is marked as failed; clear the run to go on"
"""The output of a submit that Airflow killed or never began: the exit code alone reads as lack of memory."""


class SubmitOperator(SparkSubmitOperator):
    """A Spark submit of this project by Airflow's operator, whose settings are known when the task runs.

    Parsing the DAG does no I/O.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(conn_id="spark_default", **kwargs)
        self._is_stopped = False

    def submit(self, submission: Submission, context: Any) -> SubmitEnd:
        """Submit, wait, and return how it ended. ``conf`` and ``env_vars`` of the task add to the job's."""
        self.application = job_file(submission.job)
        self.application_args = list(submission.arguments)
        self.name = submission.title
        self.conf = {**submission.conf, **(self.conf or {})}
        self.env_vars = {**spark_environment(), **(self.env_vars or {})}
        try:
            SparkSubmitOperator.execute(self, context)
        except AirflowException as error:
            return SubmitEnd(-SIGKILL, _STOPPED) if self._is_stopped else end_of(error)
        return SubmitEnd(0)

    def on_kill(self) -> None:
        """Kill the submit, or let none begin, and remember that Airflow did it."""
        self._is_stopped = True
        if self._hook is not None:  # Airflow would make one, without the settings of the job.
            super().on_kill()

    def _get_hook(self) -> SparkSubmitHook:
        """Return what submits; Airflow goes on with a task that it has stopped, for some seconds.

        Raises:
            AirflowException: The task was stopped before.
        """
        hook = super()._get_hook()
        if self._is_stopped:
            raise AirflowException(_STOPPED)
        return hook


class SparkStep(StepTask, SubmitOperator):
    """Submits the job of one step for the network, days and run of the DAG run.

    Returns what the step did, as its row of the ledger has it.
    """

    def __init__(self, *, domain: Domain, step: Step, **kwargs: Any) -> None:
        super().__init__(name=f"permalake-{step.job}", task_id=step.name, **kwargs)
        self.domain = domain
        self.step = step

    def execute(self, context: Any) -> dict[str, Any] | None:  # type: ignore[override]
        """Claim or submit; fail with the reason that the ledger has."""
        return self.run_step(context, lambda submission: self.submit(submission, context))

    def start_siblings(self, work: Workspace, request: BuildRequest, context: Any) -> None:
        """Start the runs of the other networks, in the first task of a run that names none."""
        is_first = self.step == self.domain.steps[0]
        if is_first and names_no_network(self.domain, context["params"], type_of(context["dag_run"])):
            for run in start_others(work.settings, self.domain, context, str(request.start)):
                self.log.info("started %s: this run builds %s", run, request.network)

    def prepare(self, work: Workspace, request: BuildRequest, context: Any) -> None:
        """Start other runs: the first task one for stale days.

        The last one starts runs for days that were published before their turn.
        """
        if self.step.name == SERVE:
            networks = scheduled_networks(work.settings, self.domain)
            for run in follow_up(work.reader, context, request, networks):
                self.log.info("started %s: days were published before their turn", run)
        if self.step != self.domain.steps[0]:
            return
        from permalake.pipeline.stale_days import mark_continued

        mark_continued(work)
        if other := start_stale(work.reader, context, request):
            self.log.info("started %s: days there are stale", other)
