"""What the lake says of its days: gaps, notes, staleness, unchanged input."""

from __future__ import annotations

from datetime import date

from permalake.contracts.steps import SERVE, WAIT, StepResult
from permalake.lake.status import NEVER_BUILT
from permalake.lake.step_ledger import StepLedger
from support.lakes import DAY1, DAY2, DAY3, NETWORK, build, cache, pass_audit, put, stage_day


def publish_range(settings, lake, start, end, rows, run_id, fingerprint=""):
    attempt = lake.begin(NETWORK, start, end, run_id, fingerprint=fingerprint)
    put(settings, attempt, "date_cache", rows)
    return lake.builds.publish(pass_audit(attempt))


def test_rows_notes_and_times_of_a_published_day(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    attempt.record.note("coordinator keys are unchecked")
    attempt.record.note("coordinator keys are unchecked")
    attempt.record.note("3 duplicate\nlines", DAY1)
    stage_day(settings, attempt, DAY1, 1, 5)
    done = lake.builds.publish(pass_audit(attempt))
    (day,) = lake.reader.status()
    assert (day.network, day.date, day.audited, day.published) == (NETWORK, DAY1, "passed", done.published_at)
    assert day.rows == {"date_cache": 1, "messages": 5, "ms_analytics": 1}
    assert day.notes == ["coordinator keys are unchecked", "3 duplicate lines"]
    assert day.built < day.published
    assert (day.gaps, day.failures, day.stale, day.error, day.run_id) == ([], [], None, None, "run")
    assert lake.reader.status("wormhole") == []


def test_gaps_are_missing_milestones_and_dates_that_nothing_covers(settings, lake) -> None:
    days = [date(2022, 9, number) for number in (1, 2, 6, 7, 20)]
    publish_range(settings, lake, days[0], days[1], cache(days[0], 1, 9) + cache(days[1], 10, 19), "a")
    publish_range(settings, lake, days[2], days[3], cache(days[2], 30, 39) + cache(days[3], 41, 49), "b")
    publish_range(settings, lake, date(2022, 9, 8), days[4], cache(days[4], 50, 59), "empty days between")
    assert {day.date: day.gaps for day in lake.reader.status()} == {
        days[0]: [],
        days[1]: [],
        days[2]: ["milestones 20..29 missing", "2022-09-03..2022-09-05 never built"],
        days[3]: ["milestones 40 missing"],
        days[4]: [],
    }
    assert {day.date: day.reasons for day in lake.reader.status()} == {
        days[0]: (),
        days[1]: (),
        days[2]: ("milestones_missing", "days_not_built"),
        days[3]: ("milestones_missing",),
        days[4]: (),
    }


def test_days_between_others_that_nothing_tells_of_were_never_built(settings, lake) -> None:
    """Empty days are published with their range; days before, after, or of another world are not missing."""
    first, last, failed = date(2022, 9, 1), date(2022, 9, 8), date(2022, 9, 4)
    made_up = (date(2100, 1, 1), date(2100, 1, 3))
    for number, day in enumerate((date(1970, 1, 1), first, *made_up), 1):
        publish_range(settings, lake, day, day, cache(day, number, number), f"run {number}")
    publish_range(settings, lake, date(2022, 9, 6), last, cache(last, 9, 9), "empty days before the last")
    ledger = StepLedger(lake.database)
    ledger.finish(ledger.start(NETWORK, "away", "ingest_decode", (failed, failed)), StepResult("failed"))
    listed = lake.reader.status(with_never_built=True)
    missing = [day for day in listed if day.error == NEVER_BUILT]
    assert [day.date for day in missing] == [
        *(date(2022, 9, number) for number in (2, 3, 5)),
        date(2100, 1, 2),
    ]
    assert {day.reasons for day in missing} == {("days_not_built",)}
    assert [day for day in listed if day not in missing] == lake.reader.status()
    assert lake.reader.status("wormhole", with_never_built=True) == []


def test_a_day_that_was_staged_but_not_published_is_built_only(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    attempt.pin()
    (day,) = lake.reader.status()
    assert (day.built is not None, day.audited, day.published, day.rows) == (True, None, None, {})


def test_unchanged_input_is_known_over_any_cut_of_the_range(settings, lake) -> None:
    publish_range(settings, lake, DAY1, DAY2, cache(DAY1, 1, 1) + cache(DAY2, 2, 2), "a", "same")
    assert lake.builds.is_unchanged(NETWORK, DAY1, DAY2, "same")
    assert lake.builds.is_unchanged(NETWORK, DAY2, DAY2, "same")
    assert not lake.builds.is_unchanged(NETWORK, DAY1, DAY2, "other")
    assert not lake.builds.is_unchanged(NETWORK, DAY1, DAY3, "same")
    publish_range(settings, lake, DAY3, DAY3, [], "b", "same")
    assert lake.builds.is_unchanged(NETWORK, DAY1, DAY3, "same")
    publish_range(settings, lake, DAY2, DAY2, cache(DAY2, 2, 2), "c", "newer")
    assert not lake.builds.is_unchanged(NETWORK, DAY1, DAY3, "same")
    assert lake.builds.is_unchanged(NETWORK, DAY2, DAY2, "newer")
    assert lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "same")


def test_a_refused_failed_or_stale_day_is_never_unchanged(settings, lake) -> None:
    def publish(run_id):
        publish_range(settings, lake, DAY1, DAY1, cache(DAY1, 1, 1), run_id, "same")

    publish("a")
    lake.builds.mark_stale(NETWORK, [DAY1, DAY2], "a late VAA\narrived")
    (day,) = lake.reader.status()
    assert day.stale == "a late VAA arrived"
    assert not lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "same")
    publish("b")
    assert lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "same")
    refusing = lake.begin(NETWORK, DAY1, DAY1, "c", fingerprint="same")
    refusing.record.refuse(DAY1, "broken")
    assert not lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "same")
    publish("c")
    failing = lake.begin(NETWORK, DAY1, DAY1, "d", fingerprint="same")
    failing.pin().verdict(DAY1, False, ["roots"])
    assert not lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "same")


def test_every_changed_table_is_in_one_publication(settings, lake) -> None:
    done = build(settings, lake, DAY1, 1, 5, "run")
    assert lake.reader.status()[0].published == done.published_at
    assert lake.publish(NETWORK, "run").published_at == done.published_at


def fail(lake, run_id, step, start, end, reason) -> None:
    """Record a step that has failed, as the process that ran it does."""
    ledger = StepLedger(lake.database)
    ledger.finish(ledger.start(NETWORK, run_id, step, (start, end)), StepResult("invalid", reason=reason))


def test_days_whose_ingest_failed_say_why(settings, lake) -> None:
    fail(lake, "a", "ingest_decode", DAY1, DAY2, "no milestone of these days")
    fail(lake, "b", "ingest_decode", DAY2, DAY2, "block 0x12 is missing")
    first, second = lake.reader.status(NETWORK)
    assert (first.date, first.built, first.published, first.error, first.run_id) == (
        *(DAY1, None, None),
        *("no milestone of these days", "a"),
    )
    assert (second.date, second.error, second.run_id) == (DAY2, "block 0x12 is missing", "b")
    assert second.reasons == ("step_failed",)
    assert lake.reader.status("iota") == []


def test_a_publication_ends_a_failure_and_a_later_failure_is_told(settings, lake) -> None:
    fail(lake, "a", "ingest_decode", DAY1, DAY2, "broken")
    build(settings, lake, DAY1, 1, 5, "b")
    published, waiting = lake.reader.status(NETWORK)
    assert (published.error, published.run_id, waiting.error) == (None, "b", "broken")
    fail(lake, "b", SERVE, DAY1, DAY1, "cassandra does not answer")
    fail(lake, "c", WAIT, DAY1, DAY1, "cassandra does not answer")
    assert lake.reader.status(NETWORK)[0].error is None, "it is published all the same"
    fail(lake, "d", "ingest_decode", DAY1, DAY1, "changed and broken")
    published, _ = lake.reader.status(NETWORK)
    assert (published.published is not None, published.error) == (True, "changed and broken")


def test_what_a_build_says_of_a_day_outranks_the_failure_of_its_run(settings, lake) -> None:
    refusing = lake.begin(NETWORK, DAY1, DAY1, "a")
    refusing.record.refuse(DAY1, "milestone 1 is broken")
    fail(lake, "a", "publish", DAY1, DAY1, "1 day is withheld")
    (day,) = lake.reader.status(NETWORK)
    assert day.error == "milestone 1 is broken"
