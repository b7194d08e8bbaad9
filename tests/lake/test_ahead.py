"""What jobs have done ahead of their tasks: told once, of the run's own staging alone."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from permalake.errors import PermalakeError, RefusedError
from permalake.lake import Lake
from permalake.pipeline import ahead, jobs
from support.lakes import DAY1, DAY2, NETWORK, build, put, stage_day

RUN = "run"


@pytest.fixture
def attempt(settings, lake):
    begun = lake.begin(NETWORK, DAY1, DAY1, RUN)
    stage_day(settings, begun, DAY1, 5, 3)
    return begun


def test_a_job_done_ahead_is_told_once(lake, attempt):
    attempt.did("iota_ingest", 2.5, ["ingest: 3 messages"])
    assert lake.take(NETWORK, RUN, "audit") is None
    done = lake.take(NETWORK, RUN, "iota_ingest")
    assert {table: count for table, count in done.rows.items() if count} == {
        "messages": 3,
        "ms_analytics": 1,
        "date_cache": 1,
    }
    assert (done.seconds, done.said, done.refused) == (2.5, ["ingest: 3 messages"], None)
    assert lake.take(NETWORK, RUN, "iota_ingest") is None


def test_the_last_word_of_a_job_counts(lake, attempt):
    attempt.did("audit", 1, [])
    attempt.did("audit", 2, [], refused="bad day")
    assert lake.take(NETWORK, RUN, "audit").refused == "bad day"


def test_what_was_done_on_top_of_work_that_is_done_anew_is_forgotten(lake, attempt):
    attempt.did("audit", 1, [])
    lake.forget(NETWORK, "another run")
    lake.forget(NETWORK, RUN)
    assert lake.take(NETWORK, RUN, "audit") is None


def test_it_belongs_to_the_staging_that_it_was_done_on(settings, lake, attempt):
    attempt.did("audit", 1, [])
    lake.begin(NETWORK, DAY1, DAY1, RUN)
    assert lake.take(NETWORK, RUN, "audit") is None
    lake.forget("iota", "no such run")
    build(settings, lake, DAY2, 6, 1, "published")
    assert lake.take(NETWORK, "published", "audit") is None


# -- In a job's process --------------------------------------------------------------------------------


def fails(error):
    raise error


@pytest.fixture
def process(spark, settings, monkeypatch):
    """Runs a first job, which stages three messages, and after it the audit and the enrichment given."""

    def run(audit, enrichment=lambda: None):
        lake = Lake(settings)

        def first():
            stage_day(settings, lake.begin(NETWORK, DAY1, DAY1, RUN), DAY1, 5, 3)
            jobs.say("three messages")

        for name, main in (("audit", audit), ("wormhole_enrich", enrichment)):
            module = ModuleType(name)
            module.main = lambda spark, main=main: main()
            monkeypatch.setitem(sys.modules, name, module)
        days = ["--network", NETWORK, "--start", str(DAY1), "--end", str(DAY1), "--run-id", RUN]
        following = ["--ahead", "audit", "--ahead", "wormhole_enrich"]
        monkeypatch.setattr(sys, "argv", ["spark/iota_ingest.py", *days, *following])
        monkeypatch.setattr(ahead, "load_settings", lambda: settings)
        jobs.run(first)
        names = ("iota_ingest", "audit", "wormhole_enrich")
        return {name: done for name in names if (done := lake.take(NETWORK, RUN, name))}

    return run


def test_each_job_is_remembered_with_its_own_rows_and_words(process, settings):
    def audit():
        put(settings, Lake(settings).resume(NETWORK, RUN), "date_cache", [])
        jobs.say("passed")

    done = process(audit)
    assert [(name, one.said) for name, one in done.items()] == [
        ("iota_ingest", ["three messages"]),
        ("audit", ["passed"]),
        ("wormhole_enrich", []),
    ]
    assert [one.rows["date_cache"] for one in done.values()] == [1, 0, 0]
    assert all(one.seconds >= 0 and not one.refused for one in done.values())


def test_refused_days_end_it_and_are_told(process):
    done = process(lambda: fails(RefusedError("audit failed: x")))
    assert list(done) == ["iota_ingest", "audit"]
    assert done["audit"].refused == "audit failed: x"


@pytest.mark.parametrize("error", [PermalakeError("no answer"), ValueError("first\nsecond"), KeyError()])
def test_any_other_error_is_left_to_the_jobs_own_task(process, error, caplog):
    caplog.set_level("INFO", "permalake")
    assert list(process(lambda: fails(error))) == ["iota_ingest"]
    assert f"not done ahead: {type(error).__name__}" in caplog.text
    assert "second" not in caplog.text


def test_the_first_job_fails_as_ever(process, monkeypatch, capsys):
    monkeypatch.setattr("support.lakes.put", lambda *_: fails(RefusedError("bad cone")))
    with pytest.raises(SystemExit) as ended:
        process(lambda: None)
    assert ended.value.code == RefusedError.exit_code
    assert capsys.readouterr().err == "permalake: bad cone\n"
