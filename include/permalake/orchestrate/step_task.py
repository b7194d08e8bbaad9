"""What every task of a daily DAG shares: one step, recorded in the ledger of steps."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from permalake.config import load_settings
from permalake.contracts.steps import Dataset, Step, StepResult
from permalake.errors import ConfigError, InvalidInputError, PermalakeError, line_of, mishap_of
from permalake.orchestrate import lineage
from permalake.orchestrate.context import adopted, request_from
from permalake.pipeline.domain import Domain
from permalake.pipeline.progress import emit
from permalake.pipeline.request import RUN_ID, BuildRequest

if TYPE_CHECKING:
    from permalake.pipeline.workspace import Workspace

log = logging.getLogger("airflow.task")
_EXIT_CODE = re.compile(r"Error code is: (-?\d+)")
_OUTPUT = "Last spark-submit output:"
_OURS = "permalake: "
_SEE_ABOVE = "it recorded no reason; see its output above"
_KILLED = "it was killed, most likely because memory ran out; lower PERMALAKE_SPARK_DRIVER_MEMORY"
_UNSAID = {137: _KILLED, -9: _KILLED}
_FINAL = {error.exit_code for error in (ConfigError, InvalidInputError)}
Flow = tuple[list[Dataset], list[Dataset]]


class StepTask:
    """Mixin of the operators: which step of which domain, and what it read and wrote."""

    domain: Domain
    step: Step
    _flow: Flow | None = None

    @contextmanager
    def opened(self, context: Any) -> Iterator[tuple[Workspace, BuildRequest]]:
        """Give the block workspace and request; whatever ends it is one line that says if a retry may help.

        The run's days are released then.
        """
        started = time.monotonic()
        work = request = None
        try:
            work, request = self.open(context)
            yield work, request
        except AirflowSkipException:
            raise
        except Exception as error:  # noqa: BLE001 - one line for users, whatever it is
            if work and request:
                work.builds.release(request.run_id)
            final = error if isinstance(error, AirflowException) else failure(error)
            report_failure(self.step.name, started, final)
            raise final from None

    def open(self, context: Any) -> tuple[Workspace, BuildRequest]:
        """Open the workspace of the run and return it with the run's request."""
        from permalake.pipeline.workspace import Workspace

        settings = load_settings()
        request = request_from(settings, self.domain, context)
        work = Workspace.open(settings, self.domain, request.network)
        return work, adopted(work, request, context)

    def continued(self, work: Workspace, request: BuildRequest, context: Any) -> BuildRequest:
        """Return the request on the staging that it goes on with, where the run starts at this step."""
        if not request.only or self.step != self.domain.step_of(request.only):
            return request
        from permalake.pipeline import runs

        request = runs.continued(work, request)
        context["ti"].xcom_push(RUN_ID, request.run_id)
        return request

    def claimed(self, work: Workspace, request: BuildRequest) -> StepResult | None:
        """Claim what an earlier submit of this run did of this step, if it did, and show its log."""
        result = self.claim(work, request)
        if result is not None:
            log.info("done in the submit of an earlier task, in %.1f s", result.seconds)
            for line in result.log:
                log.info(line)
        return result

    def claim(self, work: Workspace, request: BuildRequest) -> StepResult | None:
        """Claim the newest result of this step as it works on what is staged now."""
        attempt_id, inputs = None, ""
        # None: the staging is gone, or was never begun; the step's own row says why.
        if staged := work.builds.staged(request.network, request.run_id):
            attempt_id, inputs = staged.id, work.staged_state(staged, self.step)
        return work.steps.claim(
            request.network,
            request.run_id,
            self.step.name,
            by=request.dag_run,
            attempt_id=attempt_id,
            inputs=inputs,
        )

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> Any:
        """Return what the step has read and written, for OpenLineage."""
        return lineage.lineage(*(self._flow or ([], [])))


def facts(result: StepResult) -> dict[str, Any]:
    """Return what a task tells of its step: as XCom, and to whoever watches the run."""
    told: dict[str, Any] = {"rows": dict(result.rows), "quarantined": result.quarantined}
    if result.served is not None:
        told = {"served": dict(result.served)}
    if result.days is not None:
        told = {"days": [str(day) for day in result.days], "rows": dict(result.rows)}
    return told


def failure_of(result: StepResult) -> AirflowException:
    """Return the exception to fail with: one that is not retried where a retry cannot help."""
    return AirflowException(result.failure) if result.retryable else AirflowFailException(result.failure)


def failure(error: Exception) -> AirflowException:
    """Return the same for an error of the task itself."""
    if isinstance(error, PermalakeError):
        return AirflowException(str(error)) if error.retryable else AirflowFailException(str(error))
    return AirflowException(line_of(error))


def report_failure(step: str, started: float, error: AirflowException) -> None:
    """Report a failed step to whoever watches the run; what a retry cannot mend ends a command with 2."""
    code = (
        InvalidInputError.exit_code if isinstance(error, AirflowFailException) else PermalakeError.exit_code
    )
    seconds = time.monotonic() - started
    emit("failed", step=step, seconds=seconds, reason=str(error), exit_code=code)


def filled(rows: Mapping[str, int]) -> list[str]:
    """Return the tables that have rows."""
    return [name for name, count in rows.items() if count]


def died(error: AirflowException) -> AirflowException:
    """Return the failure of a submit that ended before it could record why.

    What there is to know is its exit code and the end of its output, which the error quotes.
    """
    text = str(error)
    code = _EXIT_CODE.search(text)
    if code is None:
        return AirflowException((text.strip().splitlines() or ["the Spark submit failed"])[0])
    output = text.partition(_OUTPUT)[2]
    ours = [line.removeprefix(_OURS) for line in output.splitlines() if line.startswith(_OURS)]
    number = int(code[1])
    reason = mishap_of(output) or (ours[-1] if ours else _UNSAID.get(number, _SEE_ABOVE))
    line = f"the Spark submit ended with exit code {number}: {reason}"
    return AirflowFailException(line) if number in _FINAL else AirflowException(line)
