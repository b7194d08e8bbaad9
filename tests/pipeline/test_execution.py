"""One step of a run: claimed, left out, run or failed, for Airflow's tasks and the command line alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from permalake.config import Settings, load_settings
from permalake.contracts.steps import CARRY, PUBLISH, SERVE, WAIT, StepResult
from permalake.errors import ConfigError, InvalidInputError, PermalakeError
from permalake.iota.day import IOTA
from permalake.pipeline import runs
from permalake.pipeline.execution import StepOutcome, died, execute, failed
from permalake.pipeline.fingerprint import fingerprint
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.workspace import Workspace
from permalake.spark.submit import Submission, SubmitEnd
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, messages, pass_audit, put, stage_day

INGEST, ANALYTICS, AUDIT = IOTA.steps[:3]
REQUEST = BuildRequest(IOTA, NETWORK, DAY1, DAY1, "run", dag_run="run")


@pytest.fixture
def settings(config, monkeypatch) -> Settings:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_SPARK_EVENT_LOG", "")
    return load_settings()


@pytest.fixture
def work(settings: Settings) -> Workspace:
    return Workspace.open(settings, IOTA, NETWORK)


class Submits:
    """Stands where a submit is made; does what its job would do to the lake, and ends with ``code``."""

    def __init__(self, code: int = 0, job: Callable[[], None] = lambda: None) -> None:
        self.made: list[Submission] = []
        self._code = code
        self._job = job

    def __call__(self, submission: Submission) -> SubmitEnd:
        self.made.append(submission)
        self._job()
        return SubmitEnd(self._code)


def stage(work: Workspace, *steps: str) -> Callable[[], None]:
    """What a job does that stages a day and records the results of ``steps``."""

    def job() -> None:
        lake = OpenLake(work.settings)
        attempt = lake.begin(NETWORK, DAY1, DAY1, "run", fingerprint=fingerprint(work.inputs) or "")
        stage_day(work.settings, attempt, DAY1, 1, 5)
        pass_audit(attempt)
        lake.leave()
        staged = work.builds.staged(NETWORK, "run")
        assert staged is not None
        for name in steps:
            key = work.steps.start(NETWORK, "run", name, (DAY1, DAY1), dag_run="run", submit=INGEST.name)
            state = work.staged_state(staged, IOTA.step(name))
            work.steps.finish(key, StepResult(rows={"messages": 5}), attempt_id=staged.id, inputs=state)

    return job


def refused(step: str, result: StepResult, work: Workspace) -> Callable[[], None]:
    def job() -> None:
        key = work.steps.start(NETWORK, "run", step, (DAY1, DAY1), dag_run="run", submit=step)
        work.steps.finish(key, result)

    return job


def is_free(work: Workspace) -> bool:
    work.builds.lease(NETWORK, DAY1, DAY1, "another run")
    work.builds.release(NETWORK, "another run")
    return True


def test_one_submit_does_a_small_day_and_later_steps_claim_what_it_did(work) -> None:
    names = [INGEST.name, ANALYTICS.name, AUDIT.name]
    submits = Submits(job=stage(work, *names))
    outcomes = [execute(work, REQUEST, IOTA.step(name), submits) for name in names]
    assert [outcome.result.state for outcome in outcomes] == ["done"] * 3
    (submission,) = submits.made
    assert submission.job == INGEST.job
    assert [name for name in submission.arguments if name in names] == names[1:]
    assert submission.arguments.count("--then") == len(IOTA.chained(INGEST))
    published = execute(work, REQUEST, IOTA.step(PUBLISH), submits)
    assert published.result.days == (DAY1,)
    assert len(submits.made) == 1
    assert is_free(work)


def test_what_is_published_and_unchanged_is_left_out(work) -> None:
    submits = Submits(job=stage(work, INGEST.name, ANALYTICS.name, AUDIT.name))
    for name in (INGEST.name, ANALYTICS.name, AUDIT.name, PUBLISH):
        execute(work, REQUEST, IOTA.step(name), submits)
    again = replace(REQUEST, run_id="again", dag_run="again")
    result = execute(work, again, INGEST, submits).result
    assert (result.state, len(submits.made)) == ("skipped", 1)
    assert "published and unchanged" in str(result.reason)
    assert is_free(work)
    execute(work, replace(again, force=True), INGEST, submits)
    assert len(submits.made) == 2


@pytest.mark.parametrize(("code", "retryable"), [(137, True), (1, True), (2, False), (0, True)])
def test_a_submit_that_died_tells_its_exit_code_and_frees_the_days(work, code, retryable) -> None:
    outcome = execute(work, REQUEST, INGEST, Submits(code))
    assert outcome.is_failure
    assert outcome.result.retryable is retryable
    assert outcome.result.failure.startswith(f"the Spark submit ended with exit code {code}: it ")
    row = work.steps.latest(NETWORK, "run", INGEST.name)
    assert row is not None
    assert (row.result.state, row.result.reason) == ("failed", outcome.result.reason)
    assert is_free(work)


def test_a_step_that_a_submit_did_not_end_is_failed_in_the_ledger(work) -> None:
    def job() -> None:
        work.steps.start(NETWORK, "run", INGEST.name, (DAY1, DAY1), dag_run="run", submit=INGEST.name)

    outcome = execute(work, REQUEST, INGEST, Submits(137, job))
    row = work.steps.latest(NETWORK, "run", INGEST.name)
    assert row is not None
    assert (row.result.state, row.result.reason) == ("failed", outcome.result.reason)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_step_that_failed_tells_the_reason_of_the_ledger(work, code) -> None:
    told = StepResult("invalid", reason="milestone 7: its id is not its hash", retryable=False)
    outcome = execute(work, REQUEST, INGEST, Submits(code, refused(INGEST.name, told, work)))
    assert (outcome.result.state, outcome.result.reason) == ("invalid", told.reason)
    assert is_free(work)


def test_a_step_in_this_process_fails_as_its_error_says(work) -> None:
    """Publishing days that nobody staged: another try may succeed."""
    outcome = execute(work, REQUEST, IOTA.step(PUBLISH), Submits())
    assert (outcome.result.state, outcome.result.retryable) == ("failed", True)


def test_a_run_waits_for_another_one_and_says_so(work, monkeypatch) -> None:
    monkeypatch.setattr(runs, "WAIT_SECONDS", 0)
    work.builds.lease(NETWORK, DAY1, DAY1, "another run")
    lines: list[str] = []
    outcome = execute(work, REQUEST, INGEST, Submits(), lines.append)
    assert "is being built by run another run" in lines[0]
    assert outcome.result.reason in lines[0]


@pytest.mark.parametrize("name", [CARRY, WAIT, SERVE])
def test_steps_with_nothing_to_catch_up_are_left_out(work, name) -> None:
    result = execute(work, REQUEST, IOTA.step(name), Submits()).result
    assert result.state == "skipped"
    assert result.reason


def test_a_run_goes_on_with_the_staging_of_an_earlier_one(work) -> None:
    stage(work)()
    work.builds.release(NETWORK, "run")  # The earlier run has ended: nobody waits for its lease.
    later = replace(REQUEST, run_id="later", dag_run="later", only=PUBLISH)
    outcome: StepOutcome = execute(work, later, IOTA.step(PUBLISH), Submits())
    assert outcome.request.run_id == "run"
    assert outcome.result.days == (DAY1,)


def test_a_later_step_without_a_staging_is_refused(work) -> None:
    result = execute(work, replace(REQUEST, only=AUDIT.name), AUDIT, Submits()).result
    assert "has not been built; run it without --only" in str(result.reason)


def test_a_later_step_is_refused_where_a_day_of_the_range_failed_or_was_never_built(work) -> None:
    lake = OpenLake(work.settings)
    attempt = lake.begin(NETWORK, DAY1, DAY3, "range")
    stage_day(work.settings, attempt, DAY1, 1, 5)
    put(work.settings, attempt, "messages", messages(DAY1, 1, 5) + messages(DAY2, 2, 5))
    pinned = attempt.pin()
    pinned.verdict(DAY1, True)
    pinned.verdict(DAY2, False, ["roots"])
    assert lake.builds.publish(pinned).withheld.keys() == {DAY2}
    lake.leave()

    def refusal(first, last):
        request = replace(REQUEST, start=first, end=last, only=AUDIT.name, run_id="later", dag_run="later")
        result = execute(work, request, AUDIT, Submits()).result
        work.builds.release(NETWORK, "later")
        return str(result.reason)

    after = DAY3 + timedelta(1)
    for last, named in ((DAY2, f"{DAY2}"), (DAY3, f"{DAY2}"), (after, f"{DAY2}, {after}")):
        assert refusal(DAY1, last).startswith(f"{NETWORK} {named} has not been built; run it without --only")
    assert (DAY2, "audit failed: roots") in {(day.date, day.error) for day in work.reader.status(NETWORK)}
    assert refusal(DAY3, DAY3).startswith(f"{NETWORK} {DAY3} has not been built")
    build(work.settings, OpenLake(work.settings), DAY2, 2, 5, "mended")
    # The third day has no rows, and was published with the first.
    assert "has not been built" not in refusal(DAY1, DAY3)


def test_errors_keep_whether_another_try_helps() -> None:
    assert failed(ConfigError("networks.x: not configured")).retryable is False
    assert failed(InvalidInputError("milestone 7")).state == "invalid"
    assert failed(PermalakeError("busy")).retryable is True
    assert failed(ValueError("first\nsecond")).reason == "ValueError: first"
    assert "memory ran out" in died(SubmitEnd(137)).failure


@pytest.mark.parametrize("step", [ANALYTICS, AUDIT])
def test_a_run_from_a_later_step_keeps_what_was_noted_of_its_days(work, step) -> None:
    """Whose a day is, where its source ended, what it lacks: the step that says so does not run again."""
    lake = OpenLake(work.settings)
    attempt = lake.begin(NETWORK, DAY1, DAY2, "first")
    attempt.record.note("coordinator keys are unchecked")
    attempt.record.note("copied from example.org/lake", DAY1)
    attempt.record.report_gaps(DAY2, ["2/ab/5 missing"])
    put(work.settings, attempt, "messages", messages(DAY1, 1, 5) + messages(DAY2, 2, 5))
    lake.builds.publish(pass_audit(attempt))
    lake.leave()
    before = {day.date: (day.notes, day.gaps) for day in work.reader.status(NETWORK)}
    request = replace(REQUEST, end=DAY2, only=step.name, run_id="later", dag_run="later")
    runs.continued(work, request, lambda _: None)
    later = lake.resume(NETWORK, "later")
    later.record.note("coordinator keys are unchecked")
    assert lake.builds.publish(pass_audit(later)).days == (DAY1, DAY2)
    lake.leave()
    assert {day.date: (day.notes, day.gaps) for day in work.reader.status(NETWORK)} == before
    assert before[DAY1][0] == ["coordinator keys are unchecked", "copied from example.org/lake"]
    assert "2/ab/5 missing" in before[DAY2][1]


def test_a_step_that_begins_by_itself_keeps_notes_and_says_anew_what_it_said(work) -> None:
    lake = OpenLake(work.settings)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "first")
    for line in ("prices: nobody answers", "copied from example.org/lake"):
        attempt.record.note(line)
    attempt.record.note("custody: nobody answers", DAY1)
    stage_day(work.settings, attempt, DAY1, 1, 5)
    lake.builds.publish(pass_audit(attempt))
    lake.leave()
    for _ in range(2):  # begun, and gone on with
        with work.builds.resume_or_begin(NETWORK, DAY1, DAY1, "later") as later:
            later.record.drop("prices: ", "custody: ")
            later.record.note("prices: 2 tokens without an answer")
    lake.builds.publish(pass_audit(lake.resume(NETWORK, "later")))
    lake.leave()
    [day] = work.reader.status(NETWORK)
    assert day.notes == ["prices: 2 tokens without an answer", "copied from example.org/lake"]
