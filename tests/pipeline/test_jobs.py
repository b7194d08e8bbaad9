"""Steps in one submit: each is a row of the ledger, and what fails is left to its own task."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Never

import pytest
from pyspark.sql import SparkSession

from permalake.contracts.steps import Step, StepResult
from permalake.errors import ConfigError, InvalidInputError, PermalakeError
from permalake.iota.day import IOTA
from permalake.lake.identity import open_database
from permalake.lake.step_ledger import StepLedger
from permalake.pipeline import jobs
from permalake.pipeline.workspace import Workspace
from permalake.spark import sizes
from support.lakes import DAY1, NETWORK, OpenLake, build, pass_audit, put, settings_of, stage_day

RUN = "run"
ARGUMENTS = ["--network", NETWORK, "--start", str(DAY1), "--end", str(DAY1), "--run-id", RUN]
THEN = ["--then", "second", "--then", "third"]


def fails(error) -> Never:
    raise error


def first(context):
    with context.begin(lambda: 3) as (attempt, count):
        stage_day(context.work.settings, attempt, DAY1, 5, count)
    context.report("three messages")
    return StepResult()


@pytest.fixture
def process(spark, tmp_path, monkeypatch):
    """Run three steps of a domain of our own in one process; return their rows by step."""
    settings = settings_of(tmp_path / "lake")
    bodies = SimpleNamespace(first=first, second=lambda _: StepResult(), third=lambda _: StepResult())
    monkeypatch.setitem(sys.modules, "bodies", bodies)
    monkeypatch.setattr(jobs, "load_settings", lambda: settings)
    steps = tuple(
        Step(name, (name,), f"bodies:{name}", name, job=name, writes=("messages",) if name == "first" else ())
        for name in ("first", "second", "third")
    )
    domain = replace(IOTA, steps=steps)

    def run(arguments=(*ARGUMENTS, *THEN), **replaced):
        for name, body in replaced.items():
            setattr(bodies, name, body)
        jobs.Job("first", lambda _: domain)(arguments, spark)
        return {row.key.step: row for row in StepLedger(open_database(settings)).of_run(RUN)}

    run.settings, run.domain = settings, domain  # type: ignore[attr-defined]
    return run


def test_each_step_is_recorded_with_its_own_rows_and_lines(process) -> None:
    def second(context):
        with context.resume() as attempt:
            put(process.settings, attempt, "date_cache", [])
        context.report("passed")
        return StepResult(docs="/page")

    rows = process(second=second)
    assert [(name, row.result.state, row.result.log) for name, row in rows.items()] == [
        ("first", "done", ("three messages",)),
        ("second", "done", ("passed",)),
        ("third", "done", ()),
    ]
    assert [row.result.rows["date_cache"] for row in rows.values()] == [1, 0, 0]
    assert rows["second"].result.docs == "/page"
    assert {row.submit for row in rows.values()} == {"first"}
    assert all(row.result.seconds >= 0 and row.attempt_id for row in rows.values())


def test_invalid_days_end_it_and_are_recorded(process) -> None:
    rows = process(second=lambda _: StepResult("invalid", reason="audit failed: x", retryable=False))
    assert list(rows) == ["first", "second"]
    assert rows["second"].result.reason == "audit failed: x"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermalakeError("no answer"), "no answer"),
        (ValueError("first\nsecond"), "ValueError: first"),
        (KeyError(), "KeyError"),
    ],
)
def test_any_other_error_of_a_later_step_is_left_to_its_own_task(process, error, reason) -> None:
    rows = process(second=lambda _: fails(error))
    assert list(rows) == ["first", "second"]
    assert (rows["second"].result.state, rows["second"].result.reason) == ("failed", reason)
    assert rows["second"].result.retryable


def test_a_submit_goes_on_after_a_step_that_needs_no_spark(process, monkeypatch) -> None:
    """Neither an audit by DuckDB nor publishing starts a session."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    given = []

    def second(context):
        given.append(context.given)
        return StepResult()

    rows = process(second=second)
    assert list(rows) == ["first", "second", "third"]
    assert given == [None]


def test_large_days_have_a_submit_for_each_step(process, monkeypatch) -> None:
    monkeypatch.setattr(sizes, "CHAINED_ROWS", 4)
    assert list(process()) == ["first"]


@pytest.mark.parametrize(
    "error", [InvalidInputError("bad cone"), ConfigError("no key"), PermalakeError("busy")]
)
def test_the_first_step_fails_with_its_own_error(process, error) -> None:
    with pytest.raises(type(error), match=str(error)):
        process(first=lambda _: fails(error))
    (row,) = StepLedger(open_database(process.settings)).of_run(RUN)
    assert row.result.state == ("invalid" if isinstance(error, InvalidInputError) else "failed")
    assert (row.result.reason, row.result.retryable) == (str(error), error.retryable)


def test_days_that_a_source_marks_while_it_is_prepared_are_built_by_the_attempt(tmp_path) -> None:
    settings = settings_of(tmp_path / "lake")
    build(settings, OpenLake(settings), DAY1, 5, 3, "before")
    work = Workspace.open(settings, IOTA, NETWORK)
    context = jobs.StepContext(work, jobs.StepArguments(NETWORK, DAY1, DAY1, RUN), IOTA.steps[0])

    def prepare():
        work.builds.mark_stale(NETWORK, [DAY1], "a late file")
        return 4

    with context.begin(prepare) as (attempt, count):
        stage_day(settings, attempt, DAY1, 5, count)
        pass_audit(attempt)
    assert work.reader.stale(NETWORK) == [(DAY1, DAY1)]
    with context.pinned() as pinned:
        assert work.builds.publish(pinned).rows["messages"] == 4
    assert work.reader.stale(NETWORK) == []


def test_staged_state_is_that_of_earlier_steps(process) -> None:
    """A step's own tables do not change what it worked on; another staging of an earlier step does."""
    process()
    work = Workspace.open(process.settings, process.domain, NETWORK)
    staged, second = work.builds.staged(NETWORK, RUN), process.domain.step("second")
    before = work.staged_state(staged, second)
    with work.builds.resume(NETWORK, RUN) as attempt:
        put(process.settings, attempt, "date_cache", [])
        assert work.staged_state(staged, second) == before
        put(process.settings, attempt, "messages", [])
        assert work.staged_state(staged, second) != before
