"""What a run prints about itself."""

from __future__ import annotations

from permalake.local.report import RunReport


def lines(capsys, *events, seconds=52.0):
    report = RunReport("iota_daily shimmer 2022-09-28")
    for event in events:
        report.show(event)
    if not report.failure:
        report.close(seconds)
    return report, capsys.readouterr().out.splitlines()


def test_each_step_shows_seconds_and_the_rows_it_added(capsys):
    _, printed = lines(
        capsys,
        {"event": "start", "step": "ingest_decode"},
        {"event": "done", "step": "ingest_decode", "seconds": 14.24, "rows": {"messages": 81, "tags": 0}},
        {"event": "start", "step": "analytics"},
        {"event": "done", "step": "analytics", "seconds": 9.0, "rows": {"messages": 81, "ms_analytics": 2}},
        {
            "event": "done",
            "step": "publish",
            "seconds": 0.1,
            "days": ["2022-09-28"],
            "rows": {"messages": 81},
        },
    )
    assert printed[1].split() == ["ingest_decode", "14.2", "s", "messages", "81"]
    assert printed[3].split() == ["analytics", "9.0", "s", "ms_analytics", "2"]
    assert printed[-1] == "iota_daily shimmer 2022-09-28: 1 day, 81 rows published in 52 s"


def test_a_day_without_rows_says_so(capsys):
    done = {"event": "done", "step": "publish", "seconds": 0.1, "days": [], "rows": {}}
    _, printed = lines(capsys, done)
    assert "no rows in these days" in printed[-1]


def test_a_failure_keeps_step_and_reason(capsys):
    report, printed = lines(
        capsys, {"event": "failed", "step": "audit", "seconds": 3.0, "reason": "supply is not conserved"}
    )
    assert report.failure == "audit: supply is not conserved"
    assert printed[-1].split() == ["audit", "failed", "after", "3.0", "s"]


PUBLISHED = {"event": "done", "step": "publish", "seconds": 0.1, "days": ["2022-09-28"], "rows": {"tags": 3}}
SERVED = {"event": "done", "step": "serve", "seconds": 9.0, "served": {"cassandra": 2}}


def test_days_given_to_a_store_are_counted_with_what_it_missed_before(capsys):
    _, printed = lines(capsys, PUBLISHED, SERVED)
    assert printed[1].split() == ["serve", "9.0", "s", "2", "days", "into", "cassandra"]
    assert printed[-1].endswith("1 day, 3 rows published in 52 s")


def test_a_run_that_only_caught_up_says_so(capsys):
    _, printed = lines(capsys, {"event": "unchanged", "step": "ingest_decode"}, SERVED)
    assert printed[-1].endswith("2 days into cassandra in 52 s")


def test_a_store_that_failed_does_not_hide_the_publication(capsys):
    failed = {"event": "failed", "step": "serve", "seconds": 3.0, "reason": "Cassandra does not answer"}
    report, _ = lines(capsys, PUBLISHED, failed)
    assert report.failure == "published, but serve: Cassandra does not answer"


def test_a_step_left_out_says_why(capsys):
    skipped = {"event": "skipped", "step": "serve", "reason": "the stores have every published day"}
    _, printed = lines(capsys, skipped)
    assert printed[0].split(maxsplit=1) == ["serve", "left out: the stores have every published day"]
    assert printed[-1].endswith("2022-09-28: the stores have every published day")


def test_waiting_for_another_run_and_finding_the_work_done(capsys):
    _, printed = lines(
        capsys,
        {"event": "waiting", "step": "wait", "reason": "shimmer 2022-09-28 is being built by run a"},
        {"event": "unchanged", "step": "ingest_decode"},
    )
    assert "waiting: shimmer 2022-09-28 is being built by run a" in printed[0]
    assert "published meanwhile" in printed[-1]
