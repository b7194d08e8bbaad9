"""Write, audit, publish: what readers see after each way a publish can go."""

from __future__ import annotations

import pytest

from permalake.errors import PermalakeError
from permalake.lake.catalog import locations, open_table
from permalake.lake.state import attempts
from support.lakes import (
    DAY1,
    DAY2,
    DAY3,
    NETWORK,
    analytics,
    build,
    cache,
    messages,
    pass_audit,
    put,
    stage_day,
    state,
)


def test_staged_rows_are_invisible_until_published_and_then_swapped_as_they_are(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    assert state(lake) == {}
    passed = pass_audit(attempt)
    assert state(lake) == {}
    staged = attempt.staged.changed()
    done = lake.builds.publish(passed)
    assert state(lake) == {DAY1: (5, 5)}
    assert (done.days, done.replayed, done.repeated, done.withheld) == ((DAY1,), False, False, {})
    assert done.rows == {"date_cache": 1, "messages": 5, "ms_analytics": 1}
    published = lake.reader.locations(NETWORK)
    assert {name: published[name] for name in staged} == staged


def test_two_days_staged_at_once_are_published_in_any_order(settings, lake) -> None:
    first = lake.begin(NETWORK, DAY1, DAY1, "one")
    second = lake.begin(NETWORK, DAY2, DAY2, "two")
    stage_day(settings, first, DAY1, 1, 5)
    stage_day(settings, second, DAY2, 2, 7)
    pass_audit(first)
    assert not lake.builds.publish(pass_audit(second)).replayed
    assert lake.publish(NETWORK, "one").replayed
    assert state(lake) == {DAY1: (5, 5), DAY2: (7, 7)}


def test_a_day_is_rebuilt_after_others_and_while_others_publish(settings, lake) -> None:
    build(settings, lake, DAY1, 1, 5, "a")
    build(settings, lake, DAY2, 2, 7, "b")
    rebuilt = lake.begin(NETWORK, DAY1, DAY1, "c")
    stage_day(settings, rebuilt, DAY1, 1, 3)
    build(settings, lake, DAY3, 3, 9, "d")
    build(settings, lake, DAY2, 2, 8, "e")
    assert lake.builds.publish(pass_audit(rebuilt)).replayed
    assert state(lake) == {DAY1: (3, 3), DAY2: (8, 8), DAY3: (9, 9)}


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_day_rebuilt_to_nothing_replaces_its_rows_by_none(settings, lake, disturbed) -> None:
    build(settings, lake, DAY1, 1, 5, "a")
    build(settings, lake, DAY2, 2, 7, "b")
    attempt = lake.begin(NETWORK, DAY1, DAY1, "c")
    for table in ("messages", "ms_analytics", "date_cache"):
        put(settings, attempt, table, [])
    if disturbed:
        build(settings, lake, DAY3, 3, 9, "d")
    pinned = attempt.pin()
    assert attempt.staged.changed()
    assert pinned.days_with_rows() == []
    done = lake.builds.publish(pinned)
    assert (done.days, done.rows, done.replayed) == ((DAY1,), {}, disturbed)
    assert state(lake) == {DAY2: (7, 7)} | ({DAY3: (9, 9)} if disturbed else {})


def test_a_refused_and_a_failed_day_in_a_range_stay_as_they_were(settings, lake) -> None:
    build(settings, lake, DAY2, 2, 7, "before")
    attempt = lake.begin(NETWORK, DAY1, DAY3, "range")
    put(settings, attempt, "messages", messages(DAY1, 1, 5) + messages(DAY2, 2, 1) + messages(DAY3, 3, 9))
    put(
        settings,
        attempt,
        "ms_analytics",
        analytics(DAY1, 1, 5) + analytics(DAY2, 2, 1) + analytics(DAY3, 3, 8),
    )
    attempt.record.refuse(DAY2, "milestone 2: parent\n is missing")
    pinned = attempt.pin()
    assert pinned.days_with_rows() == [DAY1, DAY3]
    pinned.verdict(DAY1, True)
    pinned.verdict(DAY3, False, ["messages.count equals ms_analytics.message_count"])
    done = lake.builds.publish(pinned)
    assert state(lake) == {DAY1: (5, 5), DAY2: (7, 7)}
    assert done.days == (DAY1,)
    assert done.withheld == {
        DAY2: "milestone 2: parent is missing",
        DAY3: "audit failed: messages.count equals ms_analytics.message_count",
    }
    told = {
        day.date: (day.audited, day.error, day.published is not None) for day in lake.reader.status(NETWORK)
    }
    assert told == {
        DAY1: ("passed", None, True),
        DAY2: (None, done.withheld[DAY2], True),
        DAY3: ("failed", done.withheld[DAY3], False),
    }
    # A run that is killed after its pin has cleared the refusal, and published nothing.
    again = lake.begin(NETWORK, DAY2, DAY2, "again")
    stage_day(settings, again, DAY2, 2, 1)
    again.pin()
    lake.leave()
    assert not lake.builds.is_unchanged(NETWORK, DAY2, DAY2, "")
    assert lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "")


def test_when_no_day_passes_nothing_moves_and_the_days_are_free_again(settings, lake) -> None:
    build(settings, lake, DAY1, 1, 5, "good")
    before = lake.reader.locations(NETWORK)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "bad")
    stage_day(settings, attempt, DAY1, 1, 6)
    pinned = attempt.pin()
    pinned.verdict(DAY1, False, ["roots"])
    done = lake.builds.publish(pinned)
    assert (done.id, done.withheld) == (None, {DAY1: "audit failed: roots"})
    assert lake.reader.locations(NETWORK) == before
    assert build(settings, lake, DAY1, 1, 5, "mended").id


def test_publishing_again_is_a_no_op_that_tells_the_earlier_publication(settings, lake) -> None:
    done = build(settings, lake, DAY1, 1, 5, "run")
    build(settings, lake, DAY2, 2, 7, "other")
    before = lake.reader.locations(NETWORK)
    again = lake.publish(NETWORK, "run")
    assert (again.id, again.days, again.rows, again.repeated) == (done.id, done.days, done.rows, True)
    assert lake.reader.locations(NETWORK) == before


def test_what_was_not_pinned_or_not_judged_is_not_published(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    with pytest.raises(PermalakeError, match="nothing is pinned"):
        lake.publish(NETWORK, "run")
    pinned = attempt.pin()
    with pytest.raises(PermalakeError, match="not audited yet"):
        lake.builds.publish(pinned)


def test_a_verdict_counts_for_the_state_that_was_pinned_only(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    first = pass_audit(attempt)
    assert first.verdicts() == {DAY1: (True, [])}
    assert attempt.pin().verdicts() == {DAY1: (True, [])}
    stage_day(settings, attempt, DAY1, 1, 6)
    second = attempt.pin()
    assert second.verdicts() == {}
    with pytest.raises(PermalakeError, match="pinned again during the audit; audit them again"):
        first.verdict(DAY1, True)
    with pytest.raises(PermalakeError, match="not audited yet"):
        lake.builds.publish(second)


def test_rows_staged_after_the_pin_are_not_published(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    pass_audit(attempt)
    stage_day(settings, attempt, DAY1, 1, 6)
    lake.publish(NETWORK, "run")
    assert state(lake) == {DAY1: (5, 5)}


def test_a_new_attempt_supersedes_the_run_s_earlier_one(settings, lake) -> None:
    lost = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, lost, DAY1, 1, 5)
    pinned = pass_audit(lost)
    kept = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, kept, DAY1, 1, 6)
    with pytest.raises(PermalakeError, match="the staging of run run is gone"):
        lake.builds.publish(pinned)
    assert lake.resume(NETWORK, "run").id == kept.id
    lake.builds.publish(pass_audit(kept))
    assert state(lake) == {DAY1: (6, 6)}


def test_private_pointers_go_when_an_attempt_ends(settings, lake) -> None:
    first = lake.begin(NETWORK, DAY1, DAY1, "one")
    second = lake.begin(NETWORK, DAY2, DAY2, "two")
    third = lake.begin(NETWORK, DAY3, DAY3, "three")
    stage_day(settings, first, DAY1, 1, 5)
    stage_day(settings, second, DAY2, 2, 5)
    for attempt in (first, second):
        lake.builds.publish(pass_audit(attempt))
    lake.discard(third)
    with lake.database.read() as connection:
        for attempt in (first, second, third):
            assert locations(connection, attempt.id, NETWORK) == {}
            assert locations(connection, f"{attempt.id}_replay", NETWORK) == {}
        states = [row.state for row in connection.execute(attempts.select().order_by(attempts.c.begun_at))]
    assert states == ["published", "published", "discarded"]
    with pytest.raises(PermalakeError, match="was discarded"):
        lake.resume(NETWORK, "three")
    with pytest.raises(PermalakeError, match="has begun nothing"):
        lake.resume(NETWORK, "never")


def test_only_the_tables_that_an_attempt_changed_are_moved(settings, lake) -> None:
    build(settings, lake, DAY1, 1, 5, "whole")
    before = lake.reader.locations(NETWORK)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "analytics only")
    put(settings, attempt, "ms_analytics", analytics(DAY1, 1, 4))
    done = lake.builds.publish(pass_audit(attempt))
    after = lake.reader.locations(NETWORK)
    assert {name for name in after if after[name] != before[name]} == {"ms_analytics"}
    assert done.rows == {"date_cache": 1, "messages": 5, "ms_analytics": 1}


def test_replays_do_not_pile_up_manifests_or_lose_rows(settings, lake) -> None:
    """A replay appends and deletes by day; live manifests stay as many as days, none holds deletes only."""
    late = lake.begin(NETWORK, DAY1, DAY1, "late")
    put(settings, late, "date_cache", cache(DAY1, 1, 1))
    for number in range(6):
        build(settings, lake, DAY2, 2, number + 1, f"run {number}")
    assert lake.builds.publish(pass_audit(late)).replayed
    table = open_table(lake.reader.locations(NETWORK)["date_cache"])
    manifests = table.current_snapshot().manifests(table.io)
    assert all(manifest.has_added_files() or manifest.has_existing_files() for manifest in manifests)
    assert len(manifests) <= 3
    rows = lake.query("select date, start_ms from shimmer.date_cache order by 1").to_pylist()
    assert rows == [{"date": DAY1, "start_ms": 1}, {"date": DAY2, "start_ms": 2}]
