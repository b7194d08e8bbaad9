"""Airflow as its operators use it: schedule, deadline, backfill, killed scheduler, failed day, calendar.

The tests share one Airflow and go through its REST API; they stand in the order of an operator's day.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from permalake.config import load_settings
from permalake.domains import open_reader
from permalake.pipeline.domain import POOL
from support.operator_days import DAYS, FIRST, LAST, lose_prices
from support.whole_runs import PERMALAKE, assert_same, rows

pytestmark = pytest.mark.scaled

TANGLE, SECOND = "tangle", "second"
WORMHOLE = "wormhole"
IOTA_DAG, WORMHOLE_DAG = "iota_daily", "wormhole_daily"
DONE = ("success", "failed")
EVERY_DAY = [FIRST + timedelta(number) for number in range(DAYS)]


def test_pages_are_for_whoever_is_logged_in(airflow) -> None:
    paths = ("", "metrics", "day?network=tangle&date=2022-09-28", "audit/index.html", "static/site.css")
    for path in paths:
        assert airflow.page(f"/permalake/{path}", known=False).status_code == 401, path
    page = airflow.page("/permalake/")
    assert page.status_code == 200
    assert "Nothing is built yet" in page.text
    assert "http" not in page.text
    assert airflow.page("/permalake/static/site.css").status_code == 200
    views = airflow.call("GET", "/plugins")["plugins"]
    (own,) = [plugin for plugin in views if plugin["name"] == "permalake"]
    assert own["external_views"][0]["name"] == "Days"
    assert airflow.call("GET", "/importErrors")["total_entries"] == 0


def test_a_scheduled_day_that_is_late_alerts_once_and_every_network_has_its_run(airflow, alerts) -> None:
    with no_slots(airflow):
        for dag in (IOTA_DAG, WORMHOLE_DAG):
            airflow.call("PATCH", f"/dags/{dag}", is_paused=False)
        scheduled, events = (
            airflow.until(lambda dag=dag: scheduled_runs(airflow, dag), f"a scheduled run of {dag}", 300)[0]
            for dag in (IOTA_DAG, WORMHOLE_DAG)
        )
        day = airflow.runs()[scheduled]["data_interval_start"][:10]
        airflow.until(lambda: len(alerts.received) > 1, "the alerts of a late day", 300)
        assert sorted((one["event"], one["dag"], one["network"], one["day"]) for one in alerts.received) == [
            ("late", IOTA_DAG, TANGLE, day),
            ("late", WORMHOLE_DAG, WORMHOLE, day),
        ]
        (told,) = [one for one in alerts.received if one["dag"] == IOTA_DAG]
        assert told["link"].endswith(f"/dags/{IOTA_DAG}/runs/{quote(scheduled)}")

    assert (scheduled, events) == (f"{TANGLE}_{day}__scheduled", f"{WORMHOLE}_{day}__scheduled")
    sibling = f"{SECOND}_{day}__scheduled"
    airflow.until(lambda: sibling in airflow.runs(), "the run of the second network", 300)
    conf = airflow.runs()[sibling]["conf"]
    assert (conf["network"], conf["start"]) == (SECOND, day)
    for dag, run in ((IOTA_DAG, scheduled), (IOTA_DAG, sibling), (WORMHOLE_DAG, events)):
        network = run.partition("_")[0]
        running = f"{network} {day}: running"
        airflow.until(lambda dag=dag, run=run: airflow.runs(dag)[run]["note"], f"the note of {run}", 300)
        assert airflow.runs(dag)[run]["note"] == running
        airflow.call("PATCH", f"/dags/{dag}/dagRuns/{quote(run)}", state="failed")
        note = airflow.runs(dag)[run]["note"]
        assert note.startswith(f"{network} {day}: marked as failed by hand "), note
    airflow.until(lambda: len(alerts.received) > 2, "the late day of the second network", 300)
    assert sorted(one["network"] for one in alerts.received) == [SECOND, TANGLE, WORMHOLE]


@pytest.mark.timeout(1800 + 300 * DAYS)
def test_a_backfill_survives_its_scheduler(airflow, place, alerts) -> None:
    airflow.call(
        "POST",
        "/backfills",
        dag_id=WORMHOLE_DAG,
        from_date=f"{FIRST}T00:00:00Z",
        to_date=f"{LAST}T00:00:00Z",
        max_active_runs=DAYS,
        dag_run_conf={},
    )

    def backfilled():
        runs = airflow.runs(WORMHOLE_DAG).items()
        return {id_: run["state"] for id_, run in runs if run["run_type"] == "backfill"}

    airflow.until(lambda: len(backfilled()) == DAYS, "the runs of the backfill", 300)
    airflow.until(
        lambda: any(airflow.tasks(run, WORMHOLE_DAG)["ingest_decode"] == "success" for run in backfilled()),
        "the first finished task",
    )
    airflow.kill_scheduler()
    with undisturbed(airflow, place) as expected:
        airflow.up()
        assert airflow.scheduler_waits_for_api(), "what it starts before fails, and has a try less"
        airflow.until(
            lambda: all(state in DONE for state in backfilled().values()),
            "the end of every run",
            900 + 200 * DAYS,
        )
    assert set(backfilled().values()) == {"success"}, airflow.told()
    for id_ in backfilled():
        run = airflow.runs(WORMHOLE_DAG)[id_]
        start = run["data_interval_start"][:10]
        told = rf"{WORMHOLE} {start}: published, \d+ messages, [\d,]+ rows in \d+ tables.*"
        assert re.fullmatch(told, run["note"]), run["note"]

    reader = open_reader(load_settings(place / "lake.toml"))

    def settled():
        """Days published before their turn were built again, and carried: their runs are over."""
        states = [run["state"] for run in airflow.runs(WORMHOLE_DAG).values()]
        return not reader.stale(WORMHOLE) and all(state in DONE for state in states)

    airflow.until(settled, "the runs that build stale days again")
    built = rows(place / "lake.toml", WORMHOLE)
    assert_same(built, rows(expected, WORMHOLE))
    assert {one["date"] for one in built["messages_daily"].to_pylist()} == set(EVERY_DAY)
    # Midnight may have come meanwhile, and with it the next scheduled runs.
    told = [(one["event"], one["run"].endswith("__scheduled")) for one in alerts.received]
    assert set(told) == {("late", True)}, "backfills and runs by hand have no deadline"
    assert len({(one["dag"], one["run"]) for one in alerts.received}) == len(told) >= 3


def test_the_form_of_a_run_shows_network_and_days_first(airflow) -> None:
    params = airflow.call("GET", f"/dags/{IOTA_DAG}/details")["params"]
    assert list(params)[:3] == ["network", "start", "end"]
    sections = {name: param["schema"].get("section") for name, param in params.items()}
    assert [name for name, section in sections.items() if section is None] == ["network", "start", "end"]


def test_of_two_runs_of_a_day_one_builds_it_and_the_other_says_why_not(airflow) -> None:
    airflow.call("PATCH", "/dags/on_published_day", is_paused=False)
    twins = ("one", "other")
    for run in twins:
        airflow.trigger(run, network=SECOND, start=str(FIRST))
    airflow.until(lambda: all(airflow.runs()[run]["state"] in DONE for run in twins), "both runs")
    assert [airflow.runs()[run]["state"] for run in twins] == ["success", "success"]
    states = {run: airflow.tasks(run)["ingest_decode"] for run in twins}
    assert sorted(states.values()) == ["skipped", "success"], states
    second = next(run for run, state in states.items() if state == "skipped")
    said = airflow.log(second, "ingest_decode")
    assert "is being built by run" in said or "published and unchanged" in said
    notes = {run: airflow.runs()[run]["note"] for run in twins}
    nothing = f"{SECOND} {FIRST}: nothing to build: {FIRST} is published and unchanged; force builds it again"
    assert notes.pop(second) == nothing
    (built,) = notes.values()
    messages = json.loads((airflow.home.parent / f"{SECOND}.json").read_text())[str(FIRST)]
    assert built.startswith(f"{SECOND} {FIRST}: published, {messages:,} blocks, "), built


def test_counts_and_events_tell_what_a_run_did(airflow, place, alerts) -> None:
    run = next(run for run in ("one", "other") if airflow.tasks(run)["ingest_decode"] == "success")
    messages = json.loads((place / f"{SECOND}.json").read_text())
    facts = airflow.xcom(run, "ingest_decode")
    assert facts["rows"]["messages"] == messages[str(FIRST)]
    assert facts["quarantined"] == 0
    said = airflow.log(run, "ingest_decode")
    assert f"{messages[str(FIRST)]} messages, 6 milestones" in said

    events = airflow.call("GET", "/assets/events?limit=100")["asset_events"]
    days = {
        (one["extra"]["network"], one["extra"]["date"])
        for one in events
        if one["uri"].startswith("permalake://published/")
    }
    assert days == {
        (SECOND, str(FIRST)),
        *((WORMHOLE, str(day)) for day in EVERY_DAY),
    }
    announced = [one["data"] for one in alerts.published if one["data"]["kind"] == "days"]
    assert {(one["network"], day["date"]) for one in announced for day in one["days"]} == days
    downstream = airflow.until(
        lambda: [id_ for id_, one in airflow.runs("on_published_day").items() if one["state"] == "success"],
        "the example's run",
        300,
    )
    counted = {}
    for one in downstream:
        counted |= airflow.xcom(one, "count_messages", "on_published_day")
    assert counted == {f"{SECOND} {day}": count for day, count in messages.items()}


def test_the_calendar_shows_every_day(airflow) -> None:
    page = airflow.page("/permalake/").text
    assert page.count('<td class="published">') == DAYS + 1
    assert re.search(rf"\b{DAYS} days?: .*\b{LAST}\b", page)
    day = airflow.page(f"/permalake/day?network={SECOND}&date={FIRST}").text
    assert "Data Docs" in day
    docs = day.split('href="/permalake/audit/')[1].split('"')[0]
    assert "expectations" in airflow.page(f"/permalake/audit/{docs}").text
    assert airflow.page("/permalake/audit/..%2F..%2Flake.toml").status_code == 404
    metrics = airflow.page("/permalake/metrics").text
    assert f'permalake_days{{network="{WORMHOLE}",state="published"}} {DAYS}' in metrics


def test_a_failed_audit_is_told_and_the_day_goes_on_when_its_input_is_mended(airflow, place, alerts) -> None:
    day = LAST + timedelta(1)
    mend = lose_prices(place / "world" / "price_history.csv", day)
    airflow.trigger("dear", WORMHOLE_DAG, start=str(day))

    def state():
        return airflow.runs(WORMHOLE_DAG)["dear"]["state"]

    airflow.until(lambda: state() in DONE, "the end of the run")
    tasks = airflow.tasks("dear", WORMHOLE_DAG)
    ended = [tasks[step] for step in ("ingest_decode", "enrich_analytics", "audit", "publish")]
    assert ended == ["success", "success", "failed", "upstream_failed"]
    (told,) = [one for one in alerts.received if one["event"] == "failed"]
    assert (told["dag"], told["network"], told["day"]) == (WORMHOLE_DAG, WORMHOLE, str(day))
    assert told["step"] == "audit"
    assert "few_prices_missing" in told["reason"]
    note = airflow.runs(WORMHOLE_DAG)["dear"]["note"]
    assert note.startswith(f"{WORMHOLE} {day}: failed in audit: "), note
    assert "few_prices_missing" in note
    assert "/runs/dear/tasks/audit" in told["link"]
    assert "expectations" in airflow.page(told["docs"].removeprefix(airflow.address)).text
    # Of this day alone: the scheduled day that was marked as failed keeps its mark.
    assert f'title="{day}: failed; audit failed' in airflow.page("/permalake/").text

    mend()
    again = {"dry_run": False, "only_failed": False}
    airflow.call("POST", f"/dags/{WORMHOLE_DAG}/dagRuns/dear/clear", **again)
    airflow.until(lambda: state() == "success", "the mended day")
    assert airflow.runs(WORMHOLE_DAG)["dear"]["note"].startswith(f"{WORMHOLE} {day}: published, ")
    page = airflow.page("/permalake/").text
    assert f'title="{day}: published' in page
    assert f'title="{day}: failed' not in page
    listed = open_reader(load_settings(place / "lake.toml")).status(WORMHOLE)
    (mended,) = [one for one in listed if one.date == day]
    assert mended.error is None
    assert mended.published


def test_lineage_names_what_the_runs_read_and_wrote(airflow, place) -> None:
    # A task sends it after it has succeeded: a killed scheduler takes that of its last task with it.
    read = {str(place / "second"), str(place / "world" / "vaas")}
    written = {f"{SECOND}.messages", f"{SECOND}.daily_analytics", f"{WORMHOLE}.message_publication"}

    def complete():
        lines = (place / "lineage.jsonl").read_text().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["eventType"] == "COMPLETE"]

    def named(side: str) -> set[str]:
        return {item["name"] for event in complete() for item in event[side]}

    airflow.until(lambda: read <= named("inputs"), "the inputs of both networks", 300)
    airflow.until(lambda: written <= named("outputs"), "the tables of both networks", 300)


@contextmanager
def no_slots(airflow):
    """No day may be built meanwhile."""
    pool = airflow.call("GET", f"/pools/{POOL}")
    change = {"pool": POOL, "include_deferred": pool["include_deferred"]}
    airflow.call("PATCH", f"/pools/{POOL}", **change, slots=0)
    try:
        yield
    finally:
        airflow.call("PATCH", f"/pools/{POOL}", **change, slots=pool["slots"])


def scheduled_runs(airflow, dag: str) -> list[str]:
    return [id_ for id_, run in airflow.runs(dag).items() if run["run_type"] == "scheduled"]


@contextmanager
def undisturbed(airflow, place: Path) -> Iterator[Path]:
    """The configuration of a lake with the same days, built as one range without a scheduler.

    Built beside the block, where Airflow waits for what the killed scheduler left.
    """
    config = place / "undisturbed.toml"
    command = [PERMALAKE, "run", "wormhole", "--date", str(FIRST), "--to", str(LAST)]
    environment = airflow.environment | {"PERMALAKE_CONFIG": str(config)}
    with (place / "undisturbed.log").open("wb") as log:
        build = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield config
        assert build.wait(1500) == 0, (place / "undisturbed.log").read_text()
    finally:
        build.kill()
        build.wait()
