"""A DAG task that is one Spark submit, or that claims what an earlier submit of its run has done."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from permalake.contracts.steps import Step, StepResult
from permalake.orchestrate import lineage
from permalake.orchestrate.network_runs import names_no_network, start_others, type_of
from permalake.orchestrate.rebuild_runs import start_stale
from permalake.orchestrate.step_task import (
    Flow,
    StepTask,
    died,
    facts,
    failure_of,
    filled,
)
from permalake.pipeline.domain import Domain
from permalake.pipeline.progress import emit
from permalake.pipeline.request import BuildRequest
from permalake.spark import event_log, jars

if TYPE_CHECKING:
    from permalake.pipeline.workspace import Workspace


class SparkStep(StepTask, SparkSubmitOperator):
    """Submits the job of one step for the network, days and run of the DAG run.

    Everything that depends on the machine or the configuration is read when the task runs, so that parsing
    the DAG does no I/O. Returns what the step did, as its row of the ledger has it.
    """

    def __init__(self, *, domain: Domain, step: Step, **kwargs: Any) -> None:
        super().__init__(conn_id="spark_default", name=f"permalake-{step.job}", task_id=step.name, **kwargs)
        self.domain = domain
        self.step = step

    def execute(self, context: Any) -> dict[str, Any] | None:  # type: ignore[override]
        """Claim or submit; fail with the reason that the ledger has."""
        with self.opened(context) as (work, given):
            if self.domain.comes_before(self.step, given.only):
                self.log.info("left as it is: this run starts at %s", given.only)
                return None
            self._start_others(work, given, context)
            emit("start", step=self.task_id)
            request, result = self._begin(work, given, context)
            if result is None:
                result = self._submitted(work, request, context)
            if result.state != "done":
                raise failure_of(result)
            outcome = facts(result)
            emit("done", step=self.task_id, seconds=result.seconds, **outcome)
            self._flow = self._lineage(work, result)
            return outcome

    def _start_others(self, work: Workspace, request: BuildRequest, context: Any) -> None:
        """Start the runs of the other networks and one for stale days, in a run's first task."""
        if self.step != self.domain.steps[0]:
            return
        if names_no_network(self.domain, context["params"], type_of(context["dag_run"])):
            for run in start_others(work.settings, self.domain, context, str(request.start)):
                self.log.info("started %s: this run builds %s", run, request.network)
        from permalake.pipeline.stale_days import mark_continued

        mark_continued(work)
        if other := start_stale(work.reader, context, request):
            self.log.info("started %s: days there are stale", other)

    def _begin(
        self, work: Workspace, request: BuildRequest, context: Any
    ) -> tuple[BuildRequest, StepResult | None]:
        """Return the request, and the step's result if an earlier submit of the run has it.

        Where the run starts, it acquires the days, and ends when there is nothing to do.
        """
        from permalake.pipeline import runs

        request = self.continued(work, request, context)
        if not self.domain.is_first(self.step, request.only):
            return request, self.claimed(work, request)
        if request.only or self.step != self.domain.steps[0]:
            return request, None
        runs.hold(work, request)
        if not runs.is_unchanged(work, request):
            return request, None
        work.builds.release(request.run_id)
        # Skipped, publish would be skipped too, and no asset event would tell of these days.
        if runs.is_untold(work, request) and (result := self.claimed(work, request)):
            return request, result
        emit("unchanged", step=self.task_id)
        raise AirflowSkipException(f"{request.days} is published and unchanged; force builds it again")

    def _submitted(self, work: Workspace, request: BuildRequest, context: Any) -> StepResult:
        """Submit, wait, and return what the step did."""
        before = work.steps.latest(request.network, request.run_id, self.step.name)
        chained = [step.name for step in self._chained()]
        work.steps.supersede(request.network, request.run_id, [self.step.name, *chained])
        try:
            self._submit(work, request, chained, context)
        except AirflowException as error:
            row = work.steps.latest(request.network, request.run_id, self.step.name)
            if row is None or row == before or row.result.state == "running":
                raise self._recorded(work, request, died(error)) from None
            if row.result.state != "done":
                return row.result
            self.log.warning("the submit ended while it ran a later step: %s", died(error))
        row = work.steps.latest(request.network, request.run_id, self.step.name)
        if row is None or row == before:
            raise AirflowException("the Spark job ended without a result; see its output above")
        return self.claim(work, request) or row.result

    def _recorded(
        self, work: Workspace, request: BuildRequest, failure: AirflowException
    ) -> AirflowException:
        """Record a failure in the ledger for the submit, which could not."""
        key = work.steps.start(
            request.network,
            request.run_id,
            self.step.name,
            (request.start, request.end),
            dag_run=request.dag_run,
            submit=self.step.name,
        )
        work.steps.finish(key, StepResult("failed", reason=str(failure)))
        return failure

    def _chained(self) -> tuple[Step, ...]:
        """Return the steps that the submit goes on with while the days are small."""
        return self.domain.chained(self.step)

    def _submit(self, work: Workspace, request: BuildRequest, then: list[str], context: Any) -> None:
        from permalake.pipeline.fingerprint import fingerprint
        from permalake.pipeline.sizing import java_options, session_conf
        from permalake.spark.submit import driver_memory, job_file, spark_conf, spark_environment

        arguments = request.arguments
        for step in then:
            arguments += ["--then", step]
        if self.step == self.domain.steps[0] and (digest := fingerprint(work.inputs)):
            arguments += ["--fingerprint", digest]
        self.application = job_file(str(self.step.job))
        self.application_args = arguments
        self.name = f"permalake {self.step.job} {request.network} {request.days}"
        own_log = event_log.folder(f"{request.network}_{request.days}_{self.task_id}")
        if own_log:
            self.log.info("Spark's own log, for its history server: %s", own_log)
        self.conf = {
            **spark_conf(self._jars(work)),
            **session_conf(work.inputs),
            **event_log.conf(own_log),
            "spark.driver.memory": driver_memory(),
            "spark.driver.extraJavaOptions": java_options(work.inputs),
            **(self.conf or {}),
        }
        self.env_vars = {**spark_environment(), **(self.env_vars or {})}
        super().execute(context)

    def _jars(self, work: Workspace) -> tuple[str, ...]:  # noqa: ARG002
        """Maven coordinates of what the job needs beside Spark."""
        return jars.COORDINATES

    def _lineage(self, work: Workspace, result: StepResult) -> Flow:
        tables = lineage.tables(work.settings, work.network, filled(result.rows))
        if self.step == self.domain.steps[0]:
            source = work.inputs.dataset
            return [source] if source else [], tables
        return tables, tables if self.step.writes else []


def spark_task(domain: Domain, step: Step, **kwargs: Any) -> SparkStep:
    """Return the task of a step that stages or audits days."""
    return SparkStep(domain=domain, step=step, execution_timeout=timedelta(hours=6), **kwargs)
