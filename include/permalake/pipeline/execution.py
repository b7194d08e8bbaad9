"""One step of a run from its beginning to its result, run by a task of Airflow or by the command line.

A step is claimed where an earlier submit of the run has done it, left out where there is nothing to do, and
run otherwise: in a Spark submit, which goes on with the steps after it while the days are small, or in this
process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from permalake.contracts.steps import AFTER_PUBLICATION, CARRY, SERVE, WAIT, Step, StepResult, StepState
from permalake.errors import ConfigError, InvalidInputError, PermalakeError, line_of, mishap_of
from permalake.pipeline import runs
from permalake.pipeline.jobs import StepContext, run_step
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.steps import wait
from permalake.pipeline.submission import submission
from permalake.pipeline.workspace import Workspace
from permalake.spark.submit import Submission, SubmitEnd
from permalake.stores import serve

LOG = logging.getLogger("permalake")
_OURS = "permalake: "
_KILLED = "it was killed, most likely because memory ran out; lower PERMALAKE_SPARK_DRIVER_MEMORY"
_UNSAID = {137: _KILLED, -9: _KILLED, 0: "it left no result; see its output"}
_FINAL = {error.exit_code for error in (ConfigError, InvalidInputError)}
Say = Callable[[str], None]
Submit = Callable[[Submission], SubmitEnd]
"""Runs a submit to its end; :class:`PermalakeError` where it never began."""


@dataclass(frozen=True)
class StepOutcome:
    """The outcome of a step: its result, and the request with which the run's later steps go on."""

    request: BuildRequest
    result: StepResult

    @property
    def is_failure(self) -> bool:
        """Whether the run ends here."""
        return self.result.state not in {"done", "skipped"}


def execute(
    work: Workspace, request: BuildRequest, step: Step, submit: Submit, say: Say = LOG.warning
) -> StepOutcome:
    """Claim, leave out or run ``step``; return its outcome.

    A failure is a result with its reason, never raised; it releases the days that the run holds. ``say`` is
    given a line while the run waits for another one.
    """
    try:
        if _is_start(step, request) and step.name not in AFTER_PUBLICATION:
            request = runs.continued(work, request, say)
        result = _before(work, request, step, say)
        if result is None and step.job is None:
            result = run_step(work, runs.arguments_of(request), step)
        elif result is None:
            result = _submitted(work, request, step, submit)
    except Exception as error:  # noqa: BLE001 - whatever ends the run is its reason
        result = failed(error)
    outcome = StepOutcome(request, result)
    if outcome.is_failure:
        work.builds.release(request.network, request.run_id)
    return outcome


def _is_start(step: Step, request: BuildRequest) -> bool:
    """Return whether the run starts at this step (``--only``)."""
    return request.only is not None and step == request.domain.step_of(request.only)


def failed(error: Exception) -> StepResult:
    """Return an error as the result of its step."""
    if isinstance(error, PermalakeError):
        state: StepState = "invalid" if isinstance(error, InvalidInputError) else "failed"
        return StepResult(state, reason=str(error), retryable=error.retryable)
    return StepResult("failed", reason=line_of(error))


def died(end: SubmitEnd) -> StepResult:
    """Return the result of a submit that ended before it could record why.

    What there is to know is its exit code and the end of its output.
    """
    ours = [line.removeprefix(_OURS) for line in end.output.splitlines() if line.startswith(_OURS)]
    unsaid = _UNSAID.get(end.code, "it recorded no reason; see its output")
    reason = mishap_of(end.output) or (ours[-1] if ours else unsaid)
    line = f"the Spark submit ended with exit code {end.code}: {reason}"
    return StepResult("failed", reason=line, retryable=end.code not in _FINAL)


def _before(work: Workspace, request: BuildRequest, step: Step, say: Say) -> StepResult | None:
    """Return the step's result where nothing has to be run; None otherwise."""
    if step.name == CARRY:
        return _carry(work, request, step)
    if step.name == WAIT:
        return _wait(work, request, step)
    if step.name == SERVE:
        return _serve(work, request)
    if _is_start(step, request):
        return None
    if step != work.domain.steps[0]:
        return claim(work, request, step)
    return _published(work, request, step, say)


def _published(work: Workspace, request: BuildRequest, step: Step, say: Say) -> StepResult | None:
    """Acquire the days where the run begins; leave the step out when they are published and unchanged."""
    runs.hold(work, request, say)
    if not runs.is_unchanged(work, request):
        return None
    work.builds.release(request.network, request.run_id)
    # If it were skipped, publish would be too, and there would be no asset event of these days.
    if runs.is_unreported(work, request) and (result := claim(work, request, step)):
        return result
    return _left_out(f"{request.days} is published and unchanged; force builds it again")


def _carry(work: Workspace, request: BuildRequest, step: Step) -> StepResult | None:
    """Claim what the submit of the audit carried; leave the step out when there is no more to do.

    It holds no days: one run at a time carries a network, and others build meanwhile.
    """
    result = None if _is_start(step, request) else claim(work, request, step)
    if result is None and work.carries.waiting(work.network) is None:
        return _left_out("every published day is carried")
    return result


def _wait(work: Workspace, request: BuildRequest, step: Step) -> StepResult:
    """Ask the stores once. Asking is no row of the ledger: a task asks every minute."""
    if not work.domain.configured_stores(work.settings):
        return _left_out(f"no store is configured for {request.network}")
    return wait.run(StepContext(work, runs.arguments_of(request), step))


def _serve(work: Workspace, request: BuildRequest) -> StepResult | None:
    """Leave the step out when no store has days to receive. No other submit writes into the stores."""
    settings, network = work.settings, request.network
    stores = work.domain.configured_stores(settings)
    if not stores:
        sections = ", ".join(f"[{store.name}]" for store in work.domain.stores)
        return _left_out(f"no store is configured for {network} ({sections})")
    if request.force and request.only == SERVE:
        serve.again(settings, network, stores, request.start, request.end)
    if serve.waiting(settings, network, stores):
        return None
    serve.prepare(
        settings, network, stores
    )  # This step alone may run again, because a store lost its tables.
    if serve.waiting(settings, network, stores):
        return None
    return _left_out("the stores have every published day")


def _left_out(reason: str) -> StepResult:
    return StepResult("skipped", reason=reason)


def claim(work: Workspace, request: BuildRequest, step: Step) -> StepResult | None:
    """Claim the newest result of ``step`` as it works on what is staged now, and show its log."""
    attempt_id, inputs = None, ""
    # None: the staging is gone, or was never begun; the step's own row says why.
    if staged := work.builds.staged(request.network, request.run_id):
        attempt_id, inputs = staged.id, work.staged_state(staged, step)
    result = work.steps.claim(
        request.network,
        request.run_id,
        step.name,
        by=request.dag_run,
        attempt_id=attempt_id,
        inputs=inputs,
    )
    if result is not None:
        LOG.info("done in the submit of an earlier step, in %.1f s", result.seconds)
        for line in result.log:
            LOG.info(line)
    return result


def _submitted(work: Workspace, request: BuildRequest, step: Step, submit: Submit) -> StepResult:
    """Submit, wait, and return what the step did, as its row of the ledger has it."""
    network, run_id = request.network, request.run_id
    before = work.steps.latest(network, run_id, step.name)
    then = [later.name for later in work.domain.chained(step)]
    work.steps.supersede(network, run_id, [step.name, *then])
    end = submit(submission(work, request, step, then))
    row = work.steps.latest(network, run_id, step.name)
    if row is None or row == before or row.result.state == "running":
        return _recorded(work, request, step, died(end))
    if end.code and row.result.state == "done":
        LOG.warning("the submit ended while it ran a later step: %s", died(end).reason)
    if end.code:
        return row.result
    return claim(work, request, step) or row.result


def _recorded(work: Workspace, request: BuildRequest, step: Step, result: StepResult) -> StepResult:
    """Record a result in the ledger for a submit that could not; return it."""
    arguments = runs.arguments_of(request)
    days = arguments.start, arguments.end
    key = work.steps.start(
        arguments.network, arguments.run_id, step.name, days, dag_run=arguments.dag_run, submit=step.name
    )
    work.steps.finish(key, result)
    return result
