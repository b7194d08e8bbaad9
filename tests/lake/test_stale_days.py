"""Stale days: who marks them, what clears them, and what a build that was under way misses."""

from __future__ import annotations

from datetime import date, timedelta
from types import SimpleNamespace

import pytest

from permalake.iota.day import IOTA
from permalake.lake.state import outdated
from permalake.orchestrate.network_runs import BACKFILL, SCHEDULED
from permalake.orchestrate.rebuild_runs import REBUILD, follow_up, start_stale
from permalake.pipeline import stale_days
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.stale_days import oldest_stale
from support.lakes import DAY1, DAY2, DAY3, NETWORK, analytics, build, pass_audit, put, stage_day


@pytest.fixture
def three_days(settings, lake):
    for number, day in enumerate((DAY1, DAY2, DAY3), start=1):
        build(settings, lake, day, number, 5, f"run {day}")
    return lake


def reasons(lake):
    return {day.date: day.stale for day in lake.reader.status(NETWORK)}


def test_days_are_marked_with_every_reason_and_cleared_by_their_publication(settings, three_days) -> None:
    lake = three_days
    lake.builds.mark_stale(NETWORK, [DAY1, DAY2, date(2030, 1, 1)], "a late\nVAA")
    lake.builds.mark_stale(NETWORK, [DAY2], "100% new input")
    lake.builds.mark_stale(NETWORK, [DAY2], "a late VAA")
    assert reasons(lake) == {DAY1: "a late VAA", DAY2: "a late VAA; 100% new input", DAY3: None}
    assert lake.reader.stale(NETWORK) == [(DAY1, DAY2)]
    build(settings, lake, DAY2, 2, 5, "again")
    assert reasons(lake) == {DAY1: "a late VAA", DAY2: None, DAY3: None}
    for number in range(200):
        lake.builds.mark_stale(NETWORK, [DAY1], f"file {number} is new")
    assert len(reasons(lake)[DAY1]) < 600


def test_what_is_marked_while_a_day_is_being_built_stays_true_of_that_build(settings, three_days) -> None:
    lake = three_days
    attempt = lake.begin(NETWORK, DAY2, DAY2, "slow")
    stage_day(settings, attempt, DAY2, 2, 6)
    lake.builds.mark_stale(NETWORK, [DAY1, DAY2], "late")
    lake.builds.publish(pass_audit(attempt))
    assert lake.reader.stale(NETWORK) == [(DAY1, DAY2)]
    build(settings, lake, DAY2, 2, 6, "again")
    assert lake.reader.stale(NETWORK) == [(DAY1, DAY1)]
    with lake.database.read() as connection:
        assert not connection.execute(outdated.select()).all(), "the log of marks does not grow"


def test_days_that_were_published_without_rows_become_stale_too(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY3, "range")
    stage_day(settings, attempt, DAY1, 1, 5)
    attempt.record.refuse(DAY3, "broken")
    done = lake.builds.publish(pass_audit(attempt))
    assert done.days == (DAY1,)
    lake.builds.mark_stale(NETWORK, [DAY2, DAY3, DAY3 + timedelta(1)], "late")
    assert reasons(lake) == {DAY1: None, DAY2: "late", DAY3: None}
    second = lake.reader.status(NETWORK)[1]
    assert (second.published, second.rows, second.run_id) == (done.published_at, {}, "range")
    assert not lake.builds.is_unchanged(NETWORK, DAY2, DAY2, "")
    build(settings, lake, DAY2, 2, 5, "again")
    assert lake.reader.stale(NETWORK) == []


def test_what_is_marked_while_a_day_is_published_without_rows_is_kept(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "slow")
    put(settings, attempt, "date_cache", [])
    lake.builds.mark_stale(NETWORK, [DAY1], "late")
    assert lake.reader.stale(NETWORK) == []
    lake.builds.publish(pass_audit(attempt))
    assert lake.reader.stale(NETWORK) == [(DAY1, DAY1)]


def test_a_day_without_rows_is_published_with_its_notes(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY2, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    attempt.record.note("the source ends before", DAY2)
    assert lake.builds.publish(pass_audit(attempt)).days == (DAY1, DAY2)
    second = lake.reader.status(NETWORK)[1]
    assert (second.date, second.rows, second.notes) == (DAY2, {}, ["the source ends before"])


def test_an_attempt_outdates_other_days_only_when_the_day_that_causes_it_is_published(
    settings, three_days
) -> None:
    lake = three_days
    attempt = lake.begin(NETWORK, DAY1, DAY2, "two days")
    put(settings, attempt, "ms_analytics", analytics(DAY1, 1, 5) + analytics(DAY2, 2, 5))
    attempt.record.announce_stale(DAY3, DAY3, "follows from the second day")
    attempt.record.announce_stale(DAY3, DAY3, "follows from the first day", cause=DAY1)
    attempt.record.refuse(DAY2, "broken")
    assert lake.reader.stale(NETWORK) == []
    pinned = attempt.pin()
    pinned.verdict(DAY1, True)
    lake.builds.publish(pinned)
    assert reasons(lake)[DAY3] == "follows from the first day"


def context(run_type, run_id="night", conf=None, unpublished=0):
    """What a task is given of its run; `unpublished`: the runs of the DAG that have yet to publish."""
    task = SimpleNamespace(dag_id="iota_daily", get_ti_count=lambda *_, **__: unpublished)
    return {"dag_run": SimpleNamespace(run_type=run_type, run_id=run_id, conf=conf), "ti": task}


def test_a_run_knows_the_oldest_stale_days_beside_its_own(three_days, settings, monkeypatch) -> None:
    lake = three_days
    assert oldest_stale(lake.reader, NETWORK, (DAY3, DAY3)) is None
    lake.builds.mark_stale(NETWORK, [DAY1, DAY2, DAY3], "late")
    assert oldest_stale(lake.reader, NETWORK, (DAY3, DAY3)) == (DAY1, DAY2)
    assert oldest_stale(lake.reader, NETWORK, (DAY2, DAY2)) == (DAY1, DAY1)
    assert oldest_stale(lake.reader, NETWORK, (DAY1, DAY3)) is None
    monkeypatch.setattr(stale_days, "MOST_STALE_DAYS", 2)
    assert oldest_stale(lake.reader, NETWORK, (DAY3 + timedelta(1), DAY3 + timedelta(1))) == (DAY1, DAY2)

    started = []
    monkeypatch.setattr(
        "permalake.orchestrate.rebuild_runs.start_run", lambda *run: started.append(run) or True
    )
    request = BuildRequest(IOTA, NETWORK, DAY3, DAY3, "run")

    assert start_stale(lake.reader, context("manual"), request) is None
    night = f"{NETWORK}_{DAY1}_{DAY2}__stale~night"
    assert start_stale(lake.reader, context("scheduled"), request) == night
    conf = {"network": NETWORK, "start": str(DAY1), "end": str(DAY2)}
    rebuild = {"origin": "night", "first": str(DAY1), "turn": 1}
    assert started == [("iota_daily", night, conf | {REBUILD: rebuild})]

    assert follow_up(lake.reader, context("manual"), request, [NETWORK]) == []
    assert follow_up(lake.reader, context("backfill", unpublished=1), request, [NETWORK]) == []
    (first,) = follow_up(lake.reader, context("backfill"), request, [NETWORK])
    assert started[1:] == [("iota_daily", first, conf | {REBUILD: rebuild})]
    again = follow_up(lake.reader, context("backfill"), request, [NETWORK])
    assert again == [first], "a retry: Airflow has it already"
    turns = [first]
    while more := follow_up(lake.reader, context("manual", turns[-1], started[-1][2]), request, [NETWORK]):
        turns += more
    assert turns == [first, f"{first}~2", f"{first}~3"], "days that stay stale are not tried without end"


def test_stale_days_of_every_network_are_built_whichever_run_is_the_last(monkeypatch) -> None:
    stale = {NETWORK: [(DAY1, DAY1)], "second": [(DAY2, DAY3)], "third": []}
    reader, runs = SimpleNamespace(stale=stale.__getitem__), {}

    def start(_, run_id, conf):
        return runs.setdefault(run_id, conf) is conf

    monkeypatch.setattr("permalake.orchestrate.rebuild_runs.start_run", start)
    request = BuildRequest(IOTA, "second", DAY1, DAY1, "run")
    sibling = context("manual", "night", {SCHEDULED: True})
    assert start_stale(reader, sibling, request) == f"second_{DAY2}_{DAY3}__stale~night"

    last = context("manual", "last", {BACKFILL: True})
    own, first = f"second_{DAY2}_{DAY3}__stale~last", f"{NETWORK}_{DAY1}__stale~last"
    assert follow_up(reader, last, request, stale) == [own, first]
    assert runs[first]["network"] == NETWORK
    assert runs[first][REBUILD] == {"origin": "last", "first": str(DAY1), "turn": 1}
    # Of those two, the one of the first network publishes last.
    follower, its_request = context("manual", first, runs[first]), BuildRequest(IOTA, NETWORK, DAY1, DAY1, "")
    assert follow_up(reader, follower, its_request, stale) == [f"{first}~2", f"{own}~2"]
    assert runs[f"{own}~2"][REBUILD]["turn"] == 2


def test_gaps_of_a_source_are_shown_with_the_day_until_it_is_built_again(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    attempt.record.report_gaps(DAY1, ["2/ab/5 missing"])
    lake.builds.publish(pass_audit(attempt))
    assert [day.gaps for day in lake.reader.status(NETWORK)] == [["2/ab/5 missing"]]
    build(settings, lake, DAY1, 1, 5, "again")
    assert [day.gaps for day in lake.reader.status(NETWORK)] == [[]]
