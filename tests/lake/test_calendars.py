"""Calendars of days and hours in both products, against Python's own calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import duckdb
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.domains import domain_of
from permalake.lake.duckdb_file import write_duckdb_file
from support.lakes import NETWORK, OpenLake, cache, pass_audit, put

# A year of 53 ISO weeks, leap days, and years that begin in the week of another one.
IOTA_DAYS = [date(2020, 2, 28), date(2020, 12, 31), date(2021, 1, 4), date(2024, 2, 29), date(2025, 1, 2)]
WORMHOLE_DAYS = [date(2020, 12, 30), date(2021, 1, 1), date(2021, 1, 4)]
NO_TIME = date(1970, 1, 1)
NETWORKS = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("calendars") / "warehouse")
    return Settings(lake={"warehouse": folder}, wormhole={"path": "."}, networks=NETWORKS)


@pytest.fixture(scope="module")
def lake(settings):
    lake = OpenLake(settings)
    bounds = [row for at, day in enumerate(IOTA_DAYS, 1) for row in cache(day, at, at)]
    _publish(settings, lake, NETWORK, "date_cache", bounds)
    counts = {"messages": 1, "verified": 1, "quarantined": 0}
    days = [NO_TIME, *WORMHOLE_DAYS]
    messages = [{"date": day, "emitter_chain": chain, **counts} for day in days for chain in (1, 2)]
    _publish(settings, lake, "wormhole", "messages_daily", messages)
    return lake


def _publish(settings, lake, network, table, rows):
    days = [row["date"] for row in rows]
    attempt = lake.begin(network, min(days), max(days), "run")
    put(settings, attempt, table, rows)
    lake.builds.publish(pass_audit(attempt))


def days_between(days):
    """Every day from the first to the last, as Python's calendar has it."""
    for number in range((max(days) - min(days)).days + 1):
        day = min(days) + timedelta(number)
        week = day.isocalendar()
        midnight = datetime.combine(day, time(), UTC)
        yield (
            *(day, day.year, (day.month + 2) // 3, day.month, day.day),
            *(week.year, week.week, week.weekday),
            *(midnight, midnight + timedelta(hours=23), int(day in days)),
        )


def rows_of(table):
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(("network", "days"), [(NETWORK, IOTA_DAYS), ("wormhole", WORMHOLE_DAYS)])
def test_every_day_has_its_place_in_year_and_week(lake, network, days) -> None:
    found = rows_of(lake.query(f"SELECT * FROM {network}.calendar_days ORDER BY date"))
    assert found == list(days_between(days))
    until = f"{network}.calendar_days(DATE '{days[-1] - timedelta(1)}')"
    assert rows_of(lake.query(f"SELECT * FROM {until} ORDER BY date")) == list(days_between(days[:-1]))


def test_every_day_has_its_hours(lake) -> None:
    wanted = [
        (day, hour, midnight + timedelta(hours=hour), midnight + timedelta(hours=hour + 1), published)
        for day, *_, midnight, _, published in days_between(WORMHOLE_DAYS)
        for hour in range(24)
    ]
    assert rows_of(lake.query("SELECT * FROM wormhole.calendar_hours ORDER BY starts_at")) == wanted


def test_a_join_of_two_networks_tells_which_have_a_day(lake) -> None:
    found = lake.query(
        "SELECT date, coalesce(tangle.is_published, 0) AS tangle, coalesce(bridge.is_published, 0) AS bridge "
        f"FROM {NETWORK}.calendar_days AS tangle FULL JOIN wormhole.calendar_days AS bridge USING (date)"
    ).to_pylist()
    for name, days in (("tangle", IOTA_DAYS), ("bridge", WORMHOLE_DAYS)):
        assert sorted(row["date"] for row in found if row[name]) == days


def test_the_api_serves_days_that_nobody_published(settings, lake) -> None:
    with TestClient(create_app(settings)) as client:
        route = f"/api/analytics/v1/{NETWORK}/calendar_days"
        week = {"start": "2020-12-28", "end": "2021-01-03"}
        found = client.get(route, params={**week, "sort": "oldest"}).json()["items"]
        assert [(row["date"][8:], row["iso_week"], row["is_published"]) for row in found] == [
            *(("28", 53, 0), ("29", 53, 0), ("30", 53, 0), ("31", 53, 1)),
            *(("01", 53, 0), ("02", 53, 0), ("03", 53, 0)),
        ]
        exported = client.get(route, params={**week, "format": "csv"}).text.splitlines()
        assert len(exported) == 1 + 7
        assert exported[4].startswith("2020-12-31,")


def test_hours_are_those_of_utc_wherever_the_file_is_read(lake, tmp_path) -> None:
    write_duckdb_file(lake.reader.published(), domain_of, tmp_path / "lake.duckdb")
    with duckdb.connect(str(tmp_path / "lake.duckdb"), read_only=True) as connection:
        connection.execute("SET TimeZone = 'Pacific/Auckland'")
        found = connection.sql("SELECT * FROM wormhole.calendar_days ORDER BY date").to_arrow_table()
    assert rows_of(found) == list(days_between(WORMHOLE_DAYS))
