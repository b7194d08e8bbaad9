"""Compaction: fewer files, the same rows, whoever publishes meanwhile; and the verbs that start it."""

from __future__ import annotations

import importlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from permalake.cli.main import main as permalake
from permalake.domains import domain_of
from permalake.iota.permanode.placement import PERMANODE_PARTITIONS, Placement
from permalake.lake.catalog import open_catalog, open_table
from permalake.lake.counts import day_of, files
from permalake.lake.maintenance.commit import alone
from permalake.lake.maintenance.compact import compact, fragmented_tables
from permalake.lake.maintenance.limits import Limits, limits
from permalake.lake.maintenance.tidy import tidy
from permalake.lake.state import days
from support.jobs import job
from support.lakes import DAY1, DAY2, DAY3, NETWORK, build, messages, pass_audit, put, stage_day, state

TARGET = 1 << 20
ROWS = f"select * from {NETWORK}.messages order by milestone_index, white_flag_index"


def build_in_pieces(settings, lake, day, milestone, sizes, run_id):
    """A published day whose messages lie in one file per size."""
    attempt = lake.begin(NETWORK, day, day, run_id)
    stage_day(settings, attempt, day, milestone, sum(sizes))
    rows = messages(day, milestone, sum(sizes))
    put(settings, attempt, "messages", rows[: sizes[0]])
    contract = domain_of(NETWORK).tables["messages"]
    staged = open_catalog(settings, attempt.id).load_table((NETWORK, "messages"))
    at = sizes[0]
    for size in sizes[1:]:
        staged.append(pa.Table.from_pylist(rows[at : at + size], schema=contract.arrow))
        at += size
    return lake.builds.publish(pass_audit(attempt))


def files_per_day(lake, table="messages"):
    found = {}
    for file in files(open_table(lake.reader.locations(NETWORK)[table])):
        found[day_of(file)] = found.get(day_of(file), 0) + 1
    return found


def compacted(spark, settings, lake, target=TARGET):
    contracts = domain_of(NETWORK).tables
    with alone(settings, lake.database, NETWORK, "maintain") as work:
        return {
            table: compact(spark, work, contracts[table], target)
            for table in fragmented_tables(lake.database, NETWORK, contracts, target)
        }


@pytest.fixture
def crowded(settings, lake) -> None:
    build_in_pieces(settings, lake, DAY1, 1, [2, 1, 2], "one")
    build_in_pieces(settings, lake, DAY2, 2, [4, 1, 1, 1], "two")
    build(settings, lake, DAY3, 3, 9, "three")


def test_a_crowded_day_gets_one_sorted_file_and_keeps_its_rows_and_publication(
    spark, settings, lake, crowded
) -> None:
    rows, before, moment = lake.query(ROWS), published(lake), datetime.now(UTC)
    assert files_per_day(lake) == {DAY1: 3, DAY2: 4, DAY3: 1}
    assert compacted(spark, settings, lake) == {"messages": {DAY1: (3, 1), DAY2: (4, 1)}}
    assert files_per_day(lake) == {DAY1: 1, DAY2: 1, DAY3: 1}
    assert lake.query(ROWS) == rows == lake.query(ROWS, moment)
    assert published(lake) == before
    assert compacted(spark, settings, lake) == {}
    tidy(settings, lake.database, NETWORK, limits(settings.lake), "maintain")
    assert lake.query(ROWS) == rows == lake.query(ROWS, moment)


def published(lake):
    """Per day the publication that stores and pages know it by."""
    with lake.database.read() as connection:
        return {row.date: (row.publication_id, row.rows) for row in connection.execute(days.select())}


def test_a_large_day_is_cut_into_files_of_the_size_aimed_at(spark, settings, lake) -> None:
    build_in_pieces(settings, lake, DAY1, 1, [300] * 6, "one")
    rows = lake.query(ROWS)
    sizes = [
        file.file_size_in_bytes for file in files(open_table(lake.reader.locations(NETWORK)["messages"]))
    ]
    target = sum(sizes) // 2 + 1
    assert compacted(spark, settings, lake, target) == {"messages": {DAY1: (6, 2)}}
    assert lake.query(ROWS) == rows
    assert fragmented_tables(lake.database, NETWORK, domain_of(NETWORK).tables, target) == {}


def test_a_day_published_while_it_is_compacted_stays_as_published(
    spark, settings, lake, crowded, monkeypatch
) -> None:
    module = importlib.import_module("permalake.lake.maintenance.compact")

    def late(*arguments):
        monkeypatch.undo()
        build(settings, lake, DAY1, 1, 6, "meanwhile")
        return module.change_table(*arguments)

    monkeypatch.setattr(module, "change_table", late)
    assert compacted(spark, settings, lake) == {"messages": {DAY2: (4, 1)}}
    assert state(lake) == {DAY1: (6, 6), DAY2: (7, 7), DAY3: (9, 9)}


def test_a_day_staged_before_is_published_after_a_compaction_of_it(spark, settings, lake, crowded) -> None:
    staged = lake.begin(NETWORK, DAY1, DAY1, "staged")
    stage_day(settings, staged, DAY1, 1, 6)
    pass_audit(staged)
    assert compacted(spark, settings, lake)["messages"].keys() == {DAY1, DAY2}
    assert lake.publish(NETWORK, "staged").replayed
    assert state(lake) == {DAY1: (6, 6), DAY2: (7, 7), DAY3: (9, 9)}
    assert files_per_day(lake) == {DAY1: 1, DAY2: 1, DAY3: 1}


def test_the_record_of_placements_forgets_its_snapshots_and_keeps_its_rows(spark, settings, lake) -> None:
    build(settings, lake, DAY1, 1, 3, "one")
    placement = Placement(spark, settings, NETWORK)
    for number in range(3):
        rows = [("address", "aa", number, 0, 9, DAY1)]
        placement.add(spark.createDataFrame(rows, PERMANODE_PARTITIONS.spark))
    now, year = datetime.now(UTC), timedelta(days=365)
    keep = Limits(history=now, abandoned=now - year, young=now + year)
    done = {one.name: one for one in tidy(settings, lake.database, NETWORK, keep, "maintain")}
    record = done[f"{NETWORK}.{PERMANODE_PARTITIONS.name}"]
    assert record.snapshots == 2
    assert record.removed >= 3  # the metadata that those commits had written
    left = placement.of_days("address", [DAY1])
    assert sorted(row["partition_id"] for row in left.collect()) == [0, 1, 2]


def test_the_job_compacts_and_the_command_tells_the_rest(
    spark, settings, lake, crowded, monkeypatch, capsys, caplog, tmp_path
) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", settings.lake.warehouse)
    monkeypatch.setattr("permalake.audit.docs.root", lambda: tmp_path / "audit")
    assert told(capsys, "maintain", "--dry-run") == [
        "would be done: shimmer.messages: 2 days compacted (7 files)"
    ]
    with caplog.at_level("INFO", logger="permalake"):
        job("lake_maintenance")(["--network", NETWORK, "--run-id", "maintain"], spark)
    assert caplog.messages == ["shimmer.messages: 2 days compacted (7 files into 2)"]
    old = Path(settings.lake.warehouse) / NETWORK / "messages" / "data" / "old.parquet"
    old.write_bytes(b"stray")
    os.utime(old, (0, 0))
    assert told(capsys, "maintain") == ["shimmer.messages: 1 file removed (5 bytes)"]
    assert told(capsys, "maintain") == ["nothing to do"]


def told(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        permalake(list(arguments))
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()
