"""Carrying: the state at the days' ends follows from what is published, in whatever order it was."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pyarrow as pa
import pytest

from permalake import paths
from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.errors import InvalidInputError, PermalakeError
from permalake.lake import Carries, record
from permalake.lake.catalog import open_table
from permalake.lake.counts import files
from permalake.lake.state import publications
from permalake.lake.task_files import TaskFiles
from permalake.net.object_storage import file_io
from support.carried_days import LedgerDay, carried, carry, history, publish
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build
from support.length import LONG


def carries_of(settings, lake):
    return Carries(settings, lake.database, domain_of)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Settings of a lake of its own that jobs find."""
    config = tmp_path / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{tmp_path}/lake"\n[networks.{NETWORK}]\nprotocol = "stardust"\n'
        f'bech32_hrp = "smr"\npath = "{tmp_path}"\nv_byte_cost = 100\n'
    )
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    return load_settings()


def test_days_wait_from_the_first_one_that_is_not_carried(settings, lake) -> None:
    carries = carries_of(settings, lake)
    assert carries.waiting(NETWORK) is None
    build(settings, lake, DAY3, 3, 5, "third")
    build(settings, lake, DAY1, 1, 5, "first")
    assert carries.waiting(NETWORK).span == (DAY1, DAY3)
    with carries.begin(NETWORK, "carry") as attempt:
        assert attempt.published_days == [DAY1, DAY3]
        build(settings, lake, DAY2, 2, 5, "meanwhile")
        build(settings, lake, DAY3, 3, 6, "corrected meanwhile")
        attempt.publish()
    assert carries.waiting(NETWORK).span == (DAY2, DAY3)
    told = {day.date: day.carried for day in lake.reader.status(NETWORK)}
    assert told == {DAY1: True, DAY2: False, DAY3: False}
    with carries.begin(NETWORK, "again") as attempt:
        attempt.publish()
    assert carries.waiting(NETWORK) is None
    with carries.begin(NETWORK, "nothing to do") as attempt:
        assert attempt is None


def test_one_run_at_a_time_carries_and_builds_go_on_beside_it(settings, lake) -> None:
    build(settings, lake, DAY1, 1, 5, "first")
    carries = carries_of(settings, lake)
    with carries.begin(NETWORK, "one") as attempt:
        with pytest.raises(PermalakeError, match="by run one since"), carries.begin(NETWORK, "two"):
            pass
        build(settings, lake, DAY2, 2, 5, "another day")
        attempt.publish()
    with carries.begin(NETWORK, "two") as attempt:
        assert attempt.published_days == [DAY2]


def test_an_attempt_to_carry_that_was_killed_leaves_nothing_behind(settings, lake) -> None:
    build(settings, lake, DAY1, 1, 5, "first")
    carries = carries_of(settings, lake)
    with carries.begin(NETWORK, "killed"):
        pass
    with carries.begin(NETWORK, "next") as attempt:
        attempt.publish()
    with lake.database.read() as connection:
        kinds = [row.kind for row in connection.execute(publications.select().order_by(publications.c.id))]
        assert record.newest(connection, NETWORK, "killed") is None, "it is no build of a day"
    assert kinds == ["days", "carry"]


def test_tables_that_a_republished_day_has_no_more_are_told_as_withdrawn(settings, lake) -> None:
    """The record of a day that was published again names its own tables alone until it is carried."""
    contract = domain_of(NETWORK).tables["active_addresses"]

    def carry_rows(*counted: date) -> dict[str, list[str]]:
        build(settings, lake, DAY1, 1, 5, f"first, {len(counted)}")
        figures = {"period": "day", "days": 1, "addresses": 1}
        rows = [{"date": day, "start_date": day, **figures} for day in counted]
        with carries_of(settings, lake).begin(NETWORK, "carry") as attempt:
            written = TaskFiles(attempt.targets([contract]), file_io())
            written.add(contract.name, pa.Table.from_pylist(rows, schema=contract.arrow))
            attempt.stage_files(written.complete(), {contract.name: attempt.published_days})
            attempt.publish()
        with lake.database.read() as connection:
            row = connection.execute(publications.select().order_by(publications.c.id.desc())).first()
        return json.loads(row.withdrawn)

    build(settings, lake, DAY2, 2, 5, "second")
    assert carry_rows(DAY1, DAY2) == {}
    assert carry_rows(DAY2) == {str(DAY1): ["active_addresses"]}
    assert carry_rows(DAY1, DAY2) == {}


def test_a_carried_table_is_not_staged_with_a_day(spark, settings, lake) -> None:
    contract = domain_of(NETWORK).tables["ledger_totals"]
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    with pytest.raises(PermalakeError, match="ledger_totals is carried"):
        attempt.stage(spark.createDataFrame([], contract.spark), contract)


@pytest.mark.scaled
def test_a_backfill_in_any_order_ends_like_one_in_order(spark, home, tmp_path, monkeypatch) -> None:
    """Four runs at a time over shuffled days, carried now and then, one day corrected twice."""
    days = history(24 if LONG else 9)
    corrected = days[len(days) // 2]
    lake = OpenLake(home)
    shuffled = random.Random(3).sample(days, len(days))
    wrong = [
        LedgerDay(corrected.day, corrected.milestone, [("smr1qzzqqqqq", "smr1qaaqqqqq", amount)])
        for amount in (7, 70)
    ]
    for number in range(0, len(shuffled), at_once := len(days) // 3):
        batch = [wrong[0] if one is corrected else one for one in shuffled[number : number + at_once]]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda one: publish(home, OpenLake(home), [one], f"build {one.day}"), batch))
        carry(spark, f"carry {number}")
    for number, one in enumerate((wrong[1], corrected)):
        publish(home, lake, [one], f"correction {number}")
        carry(spark, f"carry the correction {number}")
    with lake.database.read() as connection:
        built = [row for row in connection.execute(publications.select()) if row.kind == "days"]
    assert len(built) == len(days) + 2, "no day is built more often than it was asked for"
    assert all(day.carried and not day.stale for day in lake.reader.status(NETWORK))

    config = tmp_path / "in_order.toml"
    config.write_text((tmp_path / "permalake.toml").read_text().replace("/lake", "/in_order"))
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    settings = load_settings()
    ordered = OpenLake(settings)
    publish(settings, ordered, days, "all at once")
    carry(spark, "carry")
    assert len(carried(ordered)["address_balances"]) > len(days)
    assert carried(lake) == carried(ordered)


@pytest.mark.long
def test_a_correction_rewrites_only_files_with_changed_rows(spark, home) -> None:
    """An address that a day touched no more is corrected; days that never touch it keep their files."""
    days = history(12, start=date(2023, 1, 1))
    lake = OpenLake(home)
    publish(home, lake, days, "all")
    carry(spark, "carry")
    before = placed(lake)
    owner = "smr1qzzzzzzz"
    days[1].moves.append((owner, owner, 5))
    publish(home, lake, [days[1]], "corrected")
    carry(spark, "carry again")
    after = placed(lake)
    changed = {table: before[table] - after[table] for table in before}
    assert 0 < len(changed["ledger_totals"]) < len(before["ledger_totals"])
    later = f"select date from {NETWORK}.ledger_totals where checkpoint = date and date > '{days[1].day}'"
    checkpoints = {row["date"] for row in lake.query(later).to_pylist()}
    written = after["address_balances"] - before["address_balances"]
    assert days_of(written) == {days[1].day, *checkpoints}
    assert days_of(changed["address_balances"]) == days_of(written), "a day is one file"

    publish(home, lake, [days[1]], "the same again")
    carry(spark, "nothing changed")
    assert placed(lake) == after, "what is equal is not written again"


def days_of(paths):
    return {date.fromisoformat(path.split("date=")[1][:10]) for path in paths}


@pytest.mark.long
def test_a_correction_that_is_taken_back_leaves_the_rows_as_they_were(spark, home) -> None:
    """The last day but one is corrected, and corrected back: rows change, come and go."""
    days = history(8, start=date(2023, 1, 25))
    lake = OpenLake(home)
    publish(home, lake, days, "all")
    carry(spark, "once")
    first, before = carried(lake), placed(lake)
    publish(home, lake, [days[0]], "the same again")
    carry(spark, "again")
    assert (carried(lake), placed(lake)) == (first, before), "equal rows are not written again"
    kept = days[-2].moves
    days[-2].moves = [("smr1qzzzzzzz", kept[0][0] if kept else "smr1qyyyyyyy", 7)]
    publish(home, lake, [days[-2]], "corrected")
    carry(spark, "again")
    after = placed(lake)
    assert days_of(before["ledger_totals"] - after["ledger_totals"]) == {days[-2].day, days[-1].day}
    for table, files_before in before.items():
        moved = days_of(files_before ^ after[table])
        assert days[-2].day in moved, table
        assert moved <= {days[-2].day, days[-1].day}, f"{table}: earlier days stay as they are"
    days[-2].moves = kept
    publish(home, lake, [days[-2]], "corrected back")
    carry(spark, "once")
    assert carried(lake) == first


def placed(lake):
    """Data files of each carried table."""
    locations = lake.reader.locations(NETWORK)
    tables = ("ledger_totals", "address_balances", "active_addresses")
    return {name: {file.file_path for file in files(open_table(locations[name]))} for name in tables}


def test_what_fails_its_audit_is_not_published(spark, home) -> None:
    days = history(3)
    lake = OpenLake(home)
    publish(home, lake, days[:2], "good")
    carry(spark, "carry")
    good = carried(lake)
    bad = days[2]
    tables = bad.rows()
    tables["balance_changes"].append(
        {"address": "smr1qzzzzzzz", "change": 9, "is_active": 0, "date": bad.day}
    )
    bad.rows = lambda: tables
    publish(home, lake, [bad], "bad")
    with pytest.raises(InvalidInputError, match="distribution_adds_up: amount expected"):
        carry(spark, "carry bad")
    assert carried(lake) == good
    assert [day.carried for day in lake.reader.status(NETWORK)] == [True, True, False]
