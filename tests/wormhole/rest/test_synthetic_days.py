"""Lists and figures show real days by default; synthetic ones where asked for, or where nothing else is."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from permalake.config import Settings
from support.lakes import OpenLake, pass_audit, put
from support.served_wormhole import LAST_DAY, expected_file, expected_rows, wormhole_settings
from wormhole.rest.conftest import served

MADE_UP = date(2100, 1, 2)
TABLES = (
    *("message_publication", "quorum_state", "messages_daily", "token_transfer_payload"),
    *("token_transfer_details", "notional_transferred_daily", "tvl_daily", "chain_details"),
)
SCAN = "/wormhole/api/v1"


def moved(row):
    """A real row as one of a synthetic day, with a key of its own."""
    found = {**row, "date": MADE_UP}
    if "row_key" in row:
        chain, emitter, sequence = row["row_key"].split(":")
        found["row_key"] = f"{chain}:{emitter}:{int(sequence) + 1_000_000:016d}"
    if "timestamp" in row:
        found["timestamp"] = datetime.combine(MADE_UP, row["timestamp"].timetz())
    return found


def publish(settings: Settings, *, real: bool) -> dict[str, list[dict]]:
    lake, kept = OpenLake(settings), {}
    rows = {name: expected_rows(name) for name in TABLES if expected_file(name).exists()}
    days = {
        day: {n: [r for r in own if r["date"] == LAST_DAY] for n, own in rows.items()}
        for day in (LAST_DAY, MADE_UP)
    }
    days[MADE_UP] = {name: [moved(row) for row in own] for name, own in days[MADE_UP].items()}
    for day, tables in days.items():
        if day == LAST_DAY and not real:
            continue
        attempt = lake.begin("wormhole", day, day, f"run-{day}")
        for name, own in tables.items():
            put(settings, attempt, name, own)
        lake.builds.publish(pass_audit(attempt))
        kept[day] = tables
    lake.leave()
    return kept


@pytest.fixture(scope="module", params=[True, False], ids=["beside real days", "alone"])
def lake(request, tmp_path_factory):
    settings = wormhole_settings(tmp_path_factory.mktemp("synthetic-days"))
    rows = publish(settings, real=request.param)
    with served(settings, rows) as world:
        world.day = LAST_DAY if request.param else MADE_UP
        yield world


def years(events):
    return {date.fromisoformat(one["message_publication"]["date"]).year for one in events["items"]}


def test_recent_shows_real_messages(lake) -> None:
    found = lake.get("/api/wormhole/v1/recent?pageSize=1000")
    assert years(found) == {lake.day.year}
    assert len(found["items"]) == len(lake.rows[lake.day]["message_publication"])
    marks = {one.get("is_synthetic") for one in found["items"]}
    assert marks == ({True} if lake.day == MADE_UP else {None})


def test_synthetic_messages_are_shown_where_asked_for_and_marked(lake) -> None:
    found = lake.get("/api/wormhole/v1/recent?end=2100-12-31&pageSize=3")
    assert years(found) == {2100}
    assert [one["is_synthetic"] for one in found["items"]] == [True] * 3
    key = lake.rows[MADE_UP]["message_publication"][0]["row_key"].split(":")
    one = lake.get(f"/api/wormhole/v1/events/{key[0]}/{key[1]}/{int(key[2])}")
    assert one["is_synthetic"] is True


@pytest.mark.parametrize(
    "path", ["vaas?pageSize=500", "observations?pageSize=500", "operations?pageSize=100"]
)
def test_lists_of_wormholescan_show_real_messages(lake, path) -> None:
    found = lake.get(f"{SCAN}/{path}")
    rows = found if isinstance(found, list) else found.get("data") or found["operations"]
    sequences = {int(one["sequence"]) for one in rows}
    real = {int(row["row_key"].split(":")[2]) for row in lake.rows[lake.day]["message_publication"]}
    assert sequences
    assert sequences <= real


def test_figures_end_with_the_last_real_day(lake) -> None:
    cards = lake.get(f"{SCAN}/scorecards")
    counted = sum(row["verified"] for row in lake.rows[lake.day]["messages_daily"])
    assert int(cards["total_messages"]) == counted
    assert cards.get("is_synthetic") == (True if lake.day == MADE_UP else None)
    assert cards["of"] == len(lake.rows[lake.day]["token_transfer_details"])
    counts = lake.get(f"{SCAN}/vaas/vaa-counts")["data"]
    assert sum(one["count"] for one in counts) == counted
    newest = lake.get(f"{SCAN}/last-txs?timeSpan=1d&sampleRate=1h")[0]["time"]
    assert datetime.fromisoformat(newest).astimezone(UTC).date() == lake.day


def test_sql_ranks_the_days_up_to_the_last_real_one(lake) -> None:
    reader = OpenLake(lake.settings)
    sql = (
        "SELECT date, sum(transfers) AS transfers FROM {} "
        "WHERE dimension = 'chain' AND period = 'all' GROUP BY date"
    )
    [row] = reader.query(sql.format("wormhole.scorecards_by")).to_pylist()
    assert row["date"] == lake.day
    assert row["transfers"] == len(lake.rows[lake.day]["token_transfer_payload"])
    [row] = reader.query(sql.format("wormhole.scorecards_by(DATE '2100-01-02')")).to_pylist()
    assert row["date"] == MADE_UP
