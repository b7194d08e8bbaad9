"""The text of a run's note, from what its tasks reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from permalake.contracts.steps import StepResult
from permalake.iota.day import IOTA
from permalake.orchestrate.run_notes import LONGEST, TaskEnd, failure, merged, success
from permalake.orchestrate.task_reports import TaskReport, outcome_of
from permalake.pipeline.request import BuildRequest
from permalake.wormhole.day import WORMHOLE

DAY, NEXT = date(2022, 9, 28), date(2022, 9, 29)
REQUEST = BuildRequest(IOTA, "shimmer", DAY, DAY, "run")
PUBLISHED = "published, 81 blocks, 1,234 rows in 2 tables"
BY_HAND = "Dag Run's state was manually set to `failed`."


def end(step, state="success", *, outcome=None, reason=None):
    return TaskEnd(step, state, TaskReport(attempt="1", subject=None, outcome=outcome, reason=reason))


INGESTED = [end("ingest_decode"), end("analytics")]


@pytest.mark.parametrize(
    ("request_", "step", "result", "expected"),
    [
        (
            REQUEST,
            "publish",
            StepResult(rows={"messages": 81, "parents": 1153, "tags": 0}, days=(DAY,)),
            PUBLISHED,
        ),
        (REQUEST, "publish", StepResult(rows={"messages": 0}, days=(DAY,)), "published, without rows"),
        (
            replace(REQUEST, end=NEXT),
            "publish",
            StepResult("invalid", rows={"messages": 2, "tags": 1}, days=(DAY,)),
            "published 1 of 2 days, 2 blocks, 3 rows in 2 tables",
        ),
        (
            BuildRequest(WORMHOLE, "wormhole", DAY, DAY, "run"),
            "publish",
            StepResult(rows={"message_publication": 7, "payloads": 7}, days=(DAY,)),
            "published, 7 messages, 14 rows in 2 tables",
        ),
        (REQUEST, "publish", StepResult("invalid", days=()), None),
        (REQUEST, "carry", StepResult(rows={"holders": 3}, days=(DAY, NEXT)), "2 days carried"),
        (REQUEST, "serve", StepResult(served={"cassandra": 1}), "1 day into cassandra"),
        (REQUEST, "analytics", StepResult(rows={"messages": 81}), None),
    ],
)
def test_a_task_tells_what_it_did(request_, step, result, expected) -> None:
    assert outcome_of(request_, request_.domain.step(step), result) == expected


def test_a_run_that_published_tells_rows_and_what_came_after() -> None:
    ends = [*INGESTED, end("publish", outcome=PUBLISHED), end("serve", outcome="1 day into cassandra")]
    assert success(ends) == f"{PUBLISHED}; 1 day into cassandra"


def test_a_run_with_nothing_to_build_says_why() -> None:
    skipped = [
        end(
            "ingest_decode", "skipped", reason="2022-09-28 is published and unchanged; force builds it again"
        ),
        TaskEnd("publish", "skipped"),
        end("carry", "skipped", reason="every published day is carried"),
    ]
    expected = "nothing to build: 2022-09-28 is published and unchanged; force builds it again"
    assert success(skipped) == expected
    assert success([*skipped, end("serve", outcome="3 days into cassandra")]).endswith(
        "; 3 days into cassandra"
    )


def test_a_run_that_starts_later_says_so() -> None:
    left = end("publish", "skipped", reason="left as it is: this run starts at serve")
    ends = [end("ingest_decode"), left, end("serve", outcome="1 day into cassandra")]
    assert success(ends) == "left as it is: this run starts at serve; 1 day into cassandra"


def test_a_failed_run_names_task_and_reason() -> None:
    audit = end("audit", "failed", reason="supply is not conserved")
    ends = [*INGESTED, audit, TaskEnd("publish", "upstream_failed")]
    assert failure(ends, "task_failure") == "failed in audit: supply is not conserved"


def test_what_was_published_before_a_failure_is_told() -> None:
    ends = [*INGESTED, end("publish", outcome=PUBLISHED), end("carry", "failed", reason="disk full")]
    assert failure(ends, "task_failure") == f"{PUBLISHED}; failed in carry: disk full"


def test_a_task_that_was_killed_gave_no_reason() -> None:
    assert failure([TaskEnd("ingest_decode", "failed")], "task_failure") == (
        "failed in ingest_decode: it ended without a reason; see its log"
    )


def test_a_run_marked_as_failed_does_not_say_that_there_was_nothing_to_build() -> None:
    unbegun = [TaskEnd("ingest_decode", "skipped"), TaskEnd("publish", "skipped")]
    assert failure(unbegun, BY_HAND) == "marked as failed by hand before any task reported"
    assert failure([*INGESTED, *unbegun[1:]], BY_HAND) == "marked as failed by hand after analytics"
    assert failure(unbegun, "timed_out") == "failed: it took too long before any task reported"
    assert success([TaskEnd("ingest_decode", "failed"), *unbegun[1:]]) == (
        "failed in ingest_decode: it ended without a reason; see its log"
    )
    assert success(unbegun, by_hand=True) == "marked as success by hand before any task reported"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, "shimmer 2022-09-28: running"),
        ("shimmer 2022-09-28: failed in audit: x", "shimmer 2022-09-28: running"),
        ("iota_daily: failed in ingest_decode: no network", "shimmer 2022-09-28: running"),
        ("wormhole 2022-01-01..2022-12-31: published", "shimmer 2022-09-28: running"),
        ("for the audit\nof May", "for the audit\nof May\nshimmer 2022-09-28: running"),
        ("for May\nshimmer 2022-09-28: published", "for May\nshimmer 2022-09-28: running"),
        ("x" * 990, "x" * 990 + "\nshimmer …"),
        ("x" * 1000, "x" * 1000),
    ],
)
def test_what_users_noted_stays_and_our_line_is_the_newest(before, expected) -> None:
    note = merged(before, "shimmer 2022-09-28: running")
    assert note == expected
    assert len(note) <= LONGEST
