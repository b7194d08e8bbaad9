"""A DAG task that is one Spark submit."""

from __future__ import annotations

import re
import time
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from permalake.config import Settings, load_settings
from permalake.errors import ConfigError, PermalakeError, RefusedError
from permalake.lake import Lake
from permalake.lake.step_ledger import Done
from permalake.orchestrate import lineage
from permalake.orchestrate.context import (
    RUN_ID,
    continued,
    hold,
    quarantined,
    release,
    request_from,
    step_counts,
    unchanged,
)
from permalake.orchestrate.network_runs import names_no_network, start_others, type_of
from permalake.orchestrate.rebuild_runs import start_stale
from permalake.pipeline.domain import comes_before, task_of
from permalake.pipeline.fingerprint import fingerprint
from permalake.pipeline.progress import emit
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.sizing import is_small, java_options, session_conf
from permalake.spark import event_log, jars
from permalake.spark.submit import driver_memory, job_file, spark_conf

_EXIT_CODE = re.compile(r"Error code is: (\d+)")
_ERROR = re.compile(r"(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b")
_LOG_LINE = re.compile(r"\d\d/\d\d/\d\d .* (?:INFO|WARN) |WARNING: ")
_FINAL = {error.exit_code for error in (ConfigError, RefusedError)}
Flow = tuple[list[lineage.Named], list[lineage.Named]]


class SparkStep(SparkSubmitOperator):
    """Submits ``spark/{job}.py`` for the network, days and run id of the DAG run.

    Everything that depends on the machine or the configuration is read when the task runs, so that
    parsing the DAG does no I/O. Returns what the job has done.

    :param kind: ``iota`` or ``wormhole``
    :param job: name of the Spark job
    :param first: whether the run begins here; then unchanged, published days end it at once
    """

    def __init__(self, *, kind: str, job: str, first: bool = False, **kwargs: Any) -> None:
        super().__init__(conn_id="spark_default", name=f"permalake-{job}", **kwargs)
        self.kind = kind
        self.job = job
        self.first = first
        self._flow: Flow | None = None

    def execute(self, context: Any) -> dict[str, Any] | None:  # type: ignore[override]
        """Submit, wait, and say in one line what went wrong if it did."""
        settings = load_settings()
        request = request_from(settings, self.kind, context)
        if comes_before(self.kind, self.task_id, request.only):
            self.log.info("left as it is: this run starts at %s", request.only)
            return None
        if self.first and names_no_network(self.kind, context["params"], type_of(context["dag_run"])):
            for run in start_others(settings, context, str(request.start)):
                self.log.info("started %s: this run builds %s", run, request.network)
        if self.first and (other := start_stale(settings, context, request)):
            self.log.info("started %s: days there are stale", other)
        started = time.monotonic()
        emit("start", step=self.task_id)
        try:
            request = self._begin(settings, request, context)
            done = None if self._starts(request) else self._taken(settings, request, tell=True)
            if not done:
                self._submit(settings, request, context)
                done = self._taken(settings, request)
            facts = self._outcome(settings, request, done)
        except AirflowSkipException:
            raise
        except Exception as error:
            release(settings, request)
            reason = reason_of(error)
            seconds = time.monotonic() - started
            emit("failed", step=self.task_id, seconds=seconds, reason=reason, exit_code=exit_code_of(error))
            if isinstance(error, (AirflowException, PermalakeError)):
                raise failure(error, reason) from None
            raise
        seconds = done.seconds if done else time.monotonic() - started
        emit("done", step=self.task_id, seconds=seconds, **facts)
        self._flow = self._lineage(settings, request, facts)
        return facts

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> Any:
        """What the step has read and written, for OpenLineage; nothing of a step that had nothing to do."""
        return lineage.lineage(*(self._flow or ([], [])))

    def _lineage(self, settings: Settings, request: BuildRequest, facts: dict[str, Any]) -> Flow:
        staged = [name for name, count in facts.get("rows", {}).items() if count]
        tables = lineage.tables(settings, request.network, staged)
        if self.first:
            return lineage.raw(settings, request.network), tables
        return tables, [] if self.job == "audit" else tables

    def _outcome(self, settings: Settings, request: BuildRequest, done: Done | None) -> dict[str, Any]:
        """What the job has done: rows staged so far, by table, and input in quarantine."""
        rows = done.rows if done else step_counts(settings, request)
        return {"rows": rows, "quarantined": quarantined(settings, request)}

    def _starts(self, request: BuildRequest) -> bool:
        """Whether the run begins with this task."""
        return self.first if request.only is None else self.task_id == task_of(self.kind, request.only)

    def _taken(self, settings: Settings, request: BuildRequest, *, tell: bool = False) -> Done | None:
        """What a submit of this run has done of this task; :class:`RefusedError` when it has refused the
        days. To ``tell`` is to log what the job has said: its own submit's log has it anyway."""
        done = Lake(settings).take(request.network, request.run_id, self.job)
        if done and tell:
            self.log.info("done in the submit of an earlier task, in %.1f s", done.seconds)
            for line in done.said:
                self.log.info(line)
        if done and done.refused:
            raise RefusedError(done.refused)
        return done

    def _ahead(self, settings: Settings, request: BuildRequest) -> list[str]:
        """Jobs of the tasks after this one that its submit shall do as well: all of a small day's, whose
        submits would take longer than their work."""
        if not is_small(settings, request.network):
            return []
        jobs, following = [], self.downstream_list
        while step := next((task for task in following if type(task) is SparkStep), None):
            jobs.append(step.job)
            following = step.downstream_list
        return jobs

    def _jars(self) -> tuple[str, ...]:
        """Maven coordinates of what the job needs beside Spark."""
        return jars.COORDINATES

    def _begin(self, settings: Settings, request: BuildRequest, context: Any) -> BuildRequest:
        """Take the days where the run starts; end it there when there is nothing to do."""
        if request.only and self.task_id == task_of(self.kind, request.only):
            request = continued(settings, request)
            context["ti"].xcom_push(RUN_ID, request.run_id)
        elif self.first:
            hold(settings, request)
            if unchanged(settings, request):
                release(settings, request)
                emit("unchanged", step=self.task_id)
                raise AirflowSkipException(
                    f"{request.days} is published and unchanged; force builds it again"
                )
        return request

    def _submit(self, settings: Settings, request: BuildRequest, context: Any) -> None:
        Lake(settings).forget(request.network, request.run_id)
        arguments = request.arguments
        for job in self._ahead(settings, request):
            arguments += ["--ahead", job]
        if self.first and (digest := fingerprint(settings, request.network)):
            arguments += ["--fingerprint", digest]
        self.application = job_file(self.job)
        self.application_args = arguments
        self.name = f"permalake {self.job} {request.network} {request.days}"
        own_log = event_log.folder(f"{request.network}_{request.days}_{self.task_id}")
        if own_log:
            self.log.info("Spark's own log, for its history server: %s", own_log)
        self.conf = {
            **spark_conf(self._jars()),
            **session_conf(settings, request.network),
            **event_log.conf(own_log),
            "spark.driver.memory": driver_memory(),
            "spark.driver.extraJavaOptions": java_options(settings, request.network),
            **(self.conf or {}),
        }
        super().execute(context)


def failure(error: Exception, reason: str) -> AirflowException:
    """The exception to fail with: a wrong configuration and refused input are not worth a retry, all else
    is."""
    return AirflowFailException(reason) if exit_code_of(error) in _FINAL else AirflowException(reason)


def exit_code_of(error: Exception) -> int:
    """Return the exit code of the failed job or of the error itself; 1 if it has none."""
    code = _EXIT_CODE.search(str(error))
    return int(code[1]) if code else getattr(error, "exit_code", PermalakeError.exit_code)


def reason_of(error: Exception) -> str:
    """One line that says why. Of a failed submit's output: the job's own last word (``permalake: …``), else
    the last line of a Python or Java error, else the last line that is no log line."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    if not isinstance(error, (AirflowException, PermalakeError)):
        return f"{type(error).__name__}: {lines[0] if lines else ''}"
    spoken = [line.removeprefix("permalake: ") for line in lines if line.startswith("permalake: ")]
    errors = [line for line in lines if _ERROR.match(line)]
    plain = [line for line in lines if not _LOG_LINE.match(line)]
    return next((found[-1] for found in (spoken, errors, plain) if found), type(error).__name__)
