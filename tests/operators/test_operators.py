"""Airflow as its operators use it: schedule and deadline, backfill, a killed scheduler, the calendar.

The tests share one Airflow and go through its REST API; they stand in the order of an operator's day.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from operator_days import DAYS, FIRST, LAST

from permalake.config import load_settings
from permalake.contracts import tables_of
from permalake.lake import Lake

TANGLE = "tangle"
DONE = ("success", "failed")


def test_pages_are_for_whoever_is_logged_in(airflow):
    for path in ("/permalake/", "/permalake/metrics", "/permalake/day?network=tangle&date=2022-09-28"):
        assert airflow.page(path, known=False).status_code == 401, path
    page = airflow.page("/permalake/")
    assert page.status_code == 200
    assert "Nothing is published yet" in page.text
    assert "http" not in page.text.split("<style>")[0] + page.text.split("</style>")[1]
    views = airflow.call("GET", "/plugins")["plugins"]
    (own,) = [plugin for plugin in views if plugin["name"] == "permalake"]
    assert own["external_views"][0]["name"] == "Days"
    assert airflow.call("GET", "/importErrors")["total_entries"] == 0


def test_a_scheduled_day_that_is_late_alerts_once_and_every_network_has_its_run(airflow, alerts):
    airflow.call("PATCH", "/pools/permalake_builds", pool="permalake_builds", include_deferred=False, slots=0)
    airflow.call("PATCH", "/dags/iota_daily", is_paused=False)
    scheduled = airflow.until(
        lambda: [run for run in airflow.runs() if run.startswith("scheduled__")], "a scheduled run", 120
    )[0]
    day = airflow.runs()[scheduled]["data_interval_start"][:10]
    airflow.until(lambda: alerts.received, "the alert of a late day", 120)
    assert [(one["event"], one["dag"], one["network"], one["day"]) for one in alerts.received] == [
        ("late", "iota_daily", TANGLE, day)
    ]
    assert alerts.received[0]["link"].endswith(f"/dags/iota_daily/runs/{quote(scheduled)}")

    airflow.call("PATCH", "/pools/permalake_builds", pool="permalake_builds", include_deferred=False, slots=2)
    sibling = f"second_{scheduled}"
    airflow.until(lambda: sibling in airflow.runs(), "the run of the second network", 180)
    conf = airflow.runs()[sibling]["conf"]
    assert (conf["network"], conf["start"]) == ("second", day)
    for run in (scheduled, sibling):
        airflow.call("PATCH", f"/dags/iota_daily/dagRuns/{quote(run)}", state="failed")
    airflow.until(lambda: len(alerts.received) > 1, "the late day of the second network", 120)
    assert sorted(one["network"] for one in alerts.received) == ["second", TANGLE]


def test_a_backfill_survives_its_scheduler(airflow, place, alerts):
    airflow.call("PATCH", "/dags/on_published_day", is_paused=False)
    airflow.call(
        "POST",
        "/backfills",
        dag_id="iota_daily",
        from_date=f"{FIRST}T00:00:00Z",
        to_date=f"{LAST}T00:00:00Z",
        max_active_runs=DAYS,
        dag_run_conf={"network": TANGLE},
    )

    def backfilled():
        return {id_: run["state"] for id_, run in airflow.runs().items() if run["run_type"] == "backfill"}

    airflow.until(lambda: len(backfilled()) == DAYS, "the runs of the backfill", 120)
    airflow.until(
        lambda: any(airflow.tasks(run)["ingest_decode"] == "success" for run in backfilled()),
        "the first finished task",
    )
    airflow.kill_scheduler()
    airflow.up()
    airflow.until(lambda: all(state in DONE for state in backfilled().values()), "the end of every run", 1800)
    assert set(backfilled().values()) == {"success"}

    lake = Lake(load_settings(place / "lake.toml"))
    airflow.until(lambda: not lake.stale(TANGLE), "days published before their turn, built again")
    expected = undisturbed(airflow, place)
    built = rows(place / "lake.toml")
    assert built.keys() == expected.keys()
    for name, table in expected.items():
        assert built[name].equals(table), name
    assert len(built["daily_extended"]) == DAYS
    # Midnight may have come meanwhile, and with it the next scheduled runs.
    told = [(one["event"], one["run"].partition("scheduled__")[1]) for one in alerts.received]
    assert set(told) == {("late", "scheduled__")}, "backfills and runs by hand have no deadline"
    assert len({one["run"] for one in alerts.received}) == len(told) >= 2


def test_of_two_runs_of_a_day_one_builds_it_and_the_other_says_why_not(airflow):
    twins = ("one", "other")
    for run in twins:
        airflow.trigger(run, network="second", start=str(FIRST))
    airflow.until(lambda: all(airflow.runs()[run]["state"] in DONE for run in twins), "both runs")
    assert [airflow.runs()[run]["state"] for run in twins] == ["success", "success"]
    states = {run: airflow.tasks(run)["ingest_decode"] for run in twins}
    assert sorted(states.values()) == ["skipped", "success"], states
    second = next(run for run, state in states.items() if state == "skipped")
    said = airflow.log(second, "ingest_decode")
    assert "is being built by run" in said or "published and unchanged" in said


def test_counts_events_and_lineage_tell_what_a_run_did(airflow, place):
    run = next(
        id_
        for id_, one in airflow.runs().items()
        if one["run_type"] == "backfill" and one["logical_date"].startswith(str(LAST))
    )
    messages = json.loads((place / "tangle.json").read_text())
    facts = airflow.xcom(run, "ingest_decode")
    assert facts["rows"]["messages"] == messages[str(LAST)]
    assert facts["quarantined"] == 0
    said = airflow.log(run, "ingest_decode")
    assert f"{messages[str(LAST)]} messages, 6 milestones" in said

    events = airflow.call("GET", "/assets/events?limit=100")["asset_events"]
    told = {(one["extra"]["network"], *one["extra"]["days"]) for one in events if "days" in one["extra"]}
    assert (TANGLE, str(LAST)) in told
    downstream = airflow.until(
        lambda: [id_ for id_, one in airflow.runs("on_published_day").items() if one["state"] == "success"],
        "the example's run",
        300,
    )
    counted = {}
    for one in downstream:
        counted |= airflow.xcom(one, "count_messages", "on_published_day")
    expected = {f"{TANGLE} {day}": count for day, count in messages.items()}
    assert {day: count for day, count in counted.items() if day.startswith(TANGLE)} == expected

    lines = (place / "lineage.jsonl").read_text().splitlines()
    complete = [event for event in map(json.loads, lines) if event["eventType"] == "COMPLETE"]
    read = {item["name"] for event in complete for item in event["inputs"]}
    written = {item["name"] for event in complete for item in event["outputs"]}
    assert str(place / "tangle") in read
    assert {f"{TANGLE}.messages", f"{TANGLE}.daily_analytics"} <= written


def test_the_calendar_shows_every_day(airflow):
    page = airflow.page("/permalake/").text
    assert page.count('class="published"') == DAYS + 1
    assert f"Published up to <b>{LAST}</b>" in page
    day = airflow.page(f"/permalake/day?network={TANGLE}&date={FIRST}").text
    assert "Data Docs" in day
    docs = day.split('href="audit/')[1].split('"')[0]
    assert "expectations" in airflow.page(f"/permalake/audit/{docs}").text
    assert airflow.page("/permalake/audit/..%2F..%2Flake.toml").status_code == 404
    metrics = airflow.page("/permalake/metrics").text
    assert f'permalake_days{{network="{TANGLE}",state="published"}} {DAYS}' in metrics


def test_a_failed_audit_is_told_and_the_day_goes_on_when_its_input_is_mended(airflow, place, alerts):
    prices = place / "world" / "price_history.csv"
    whole = prices.read_bytes()
    prices.write_bytes(whole.splitlines(keepends=True)[0])
    airflow.call("PATCH", "/dags/wormhole_daily", is_paused=False)
    airflow.trigger("dear", "wormhole_daily", start=str(FIRST))

    def state():
        return airflow.runs("wormhole_daily")["dear"]["state"]

    airflow.until(lambda: state() in DONE, "the end of the run")
    tasks = airflow.tasks("dear", "wormhole_daily")
    ended = [tasks[step] for step in ("ingest_decode", "enrich_analytics", "audit", "publish")]
    assert ended == ["success", "success", "failed", "upstream_failed"]
    (told,) = [one for one in alerts.received if (one["event"], one["dag"]) == ("failed", "wormhole_daily")]
    assert (told["network"], told["day"], told["step"]) == ("wormhole", str(FIRST), "audit")
    assert "few_prices_missing" in told["reason"] and "/runs/dear/tasks/audit" in told["link"]
    assert "expectations" in airflow.page(told["docs"].removeprefix(airflow.address)).text
    assert 'class="failed"' in airflow.page("/permalake/").text

    prices.write_bytes(whole)
    again = {"dry_run": False, "only_failed": False}
    airflow.call("POST", "/dags/wormhole_daily/dagRuns/dear/clear", **again)
    airflow.until(lambda: state() == "success", "the mended day")
    assert 'class="failed"' not in airflow.page("/permalake/").text
    (day,) = Lake(load_settings(place / "lake.toml")).status("wormhole")
    assert day.published and not day.error


def undisturbed(airflow, place: Path) -> dict[str, pa.Table]:
    """The same days, built as one range without a scheduler, in a lake of their own."""
    command = [str(Path(sys.executable).with_name("permalake")), "run", "iota", "--network", TANGLE]
    command += ["--date", str(FIRST), "--to", str(LAST)]
    environment = airflow.environment | {"PERMALAKE_CONFIG": str(place / "undisturbed.toml")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return rows(place / "undisturbed.toml")


def rows(config: Path) -> dict[str, pa.Table]:
    """Every published row, sorted, without the columns that hold a clock."""
    lake = Lake(load_settings(config))
    found = {}
    for name, contract in tables_of(TANGLE).items():
        listed = ", ".join(f'"{column}"' for column in contract.names if column not in contract.keeps_clock)
        found[name] = lake.query(f'select {listed} from "{TANGLE}".{name} order by all')
    return found
