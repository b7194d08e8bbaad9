"""From the published lake into real stores: catching up, killed and repeated, rebuilt with other input."""

from __future__ import annotations

import datetime as dt
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import NoHostAvailable

from permalake.config import Settings
from permalake.config.lake import LakeSettings
from permalake.config.networks import NetworkSettings
from permalake.config.stores import CassandraSettings
from permalake.domains import stores_of
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.permanode import stardust_schema as store
from permalake.lake.database import Database
from permalake.local.services.daemon import free_port
from permalake.stores import cassandra, served
from permalake.stores import serve as serving
from permalake.stores.serve import serve
from support import expected_cassandra, lake_frames, places
from support.cassandra_rows import as_set, held
from support.lakes import OpenLake, pass_audit, put

FOLDER, STARDUST = (
    places.DATA / "synthetic" / protocol / "expected" for protocol in ("chrysalis", "stardust")
)
NETWORK, KEYSPACE = "served-tangle", "served_tangle"
FIRST, SECOND = (dt.date.fromisoformat(row["date"]) for row in lake_frames.read(FOLDER / "date_cache"))
SHIMMER = "served-shimmer"
SIZE = 7


@pytest.fixture(scope="module")
def session(spark):
    return spark.newSession()


@pytest.fixture(scope="module")
def settings(cassandra_server, tmp_path_factory):
    return Settings(
        lake=LakeSettings(warehouse=str(tmp_path_factory.mktemp("lake"))),
        networks={
            NETWORK: NetworkSettings(protocol="chrysalis", bech32_hrp="iota", path=FOLDER),
            SHIMMER: NetworkSettings(protocol="stardust", bech32_hrp="smr", path=STARDUST),
        },
        cassandra=CassandraSettings(
            contact_points=("127.0.0.1",), port=cassandra_server.port, partition_size=SIZE
        ),
    )


@pytest.fixture(scope="module")
def tables():
    """Rows of the tangle's lake tables with their dates, and what each day consumed."""
    spent = spent_by_day()
    consumed = [
        {
            "output_id": output_id,
            "kind": "legacy",
            "amount": 1,
            "milestone_index": 1,
            "ms_timestamp": dt.datetime.combine(day, dt.time(12), dt.UTC),
            "date": day,
        }
        for day, ids in spent.items()
        for output_id in sorted(ids)
    ]
    return {**rows_of(FOLDER), "consumed_outputs": consumed}


def rows_of(folder):
    days = {row["milestone_index"]: row["date"] for row in lake_frames.read(folder / "messages")}
    return {
        name: lake_frames.typed(table, folder, days=days)
        for name, table in IOTA_TABLES.items()
        if (folder / f"{name}.jsonl.gz").exists()
    }


def spent_by_day():
    """What was created and is not unspent at a day's end was consumed on that day or before."""
    created = {row["output_id"] for row in lake_frames.read(FOLDER / "legacy_outputs")}
    first, second = (
        {one["output_id"] for one in day["unspent"]} for day in lake_frames.read(FOLDER / "ledger")
    )
    born_first = {
        row["output_id"]
        for row in lake_frames.read(FOLDER / "legacy_outputs")
        if row["milestone_index"] <= lake_frames.read(FOLDER / "date_cache")[0]["end_ms"]
    }
    return {FIRST: born_first - first, SECOND: created - second - (born_first - first)}


def publish(settings, tables, day, run_id, keep=None, network=NETWORK, end=None) -> None:
    """A day of a tangle (or all up to ``end``) through the lake's own front door."""
    lake = OpenLake(settings)
    attempt = lake.begin(network, day, end or day, run_id)
    for name, rows in tables.items():
        of_days = [row for row in rows if day <= row["date"] <= (end or day)]
        if keep is not None and name != "consumed_outputs" and "milestone_index" in IOTA_TABLES[name].names:
            of_days = [row for row in of_days if keep(row)]
        put(settings, attempt, name, of_days)
    lake.builds.publish(pass_audit(attempt))


def due(settings):
    with Database(settings.lake.catalog_uri).read() as connection:
        return [one.day for one in served.due(connection, NETWORK, "cassandra")]


def check(settings, expected) -> None:
    check_tables(settings, KEYSPACE, expected)
    check_lookups(settings, expected)


def check_tables(settings, keyspace, expected) -> None:
    for table in store.STARDUST_TABLES:
        rows = held(settings.cassandra, keyspace, table.name)
        assert as_set(rows) == as_set(expected[table.name]), table.name
        for view in table.views:
            seen = [
                row for row in expected[table.name] if all(row.get(name) is not None for name in view.key)
            ]
            assert as_set(held(settings.cassandra, keyspace, view.name)) == as_set(seen), view.name


def check_lookups(settings, expected):
    """The partitioned look-ups hold the same facts, partitions are never over-full, hints name them all."""
    seen = Counter()
    newest = {}
    for keyspace, name, variant, key, own in (
        (KEYSPACE, "addresses", "address", "address", ("milestone_index", "transaction_id", "idx", "amount")),
        (KEYSPACE, "indexes", "index", "indexation", ("milestone_index", "message_id", "inclusion_state")),
        (f"{KEYSPACE}_v1", "parents", "parent", "parent_id", ("milestone_index", "message_id")),
    ):
        rows = held(settings.cassandra, keyspace, name)
        facts = {(row[key], *(row[column] for column in own)) for row in rows}
        assert facts == facts_of(variant, expected)
        assert len(rows) == len(facts)
        for row in rows:
            at = variant, row[key], row["partition_id"]
            seen[at] += 1
            newest[at] = max(newest.get(at, 0), row["milestone_index"])
    assert max(seen.values()) <= SIZE
    hints = {
        (row["variant"], row["hint"], row["partition_id"]): row["milestone_index"]
        for row in held(settings.cassandra, KEYSPACE, "hints")
    }
    assert hints.keys() == newest.keys()
    assert all(hints[at] >= newest[at] for at in hints)
    return seen


def facts_of(variant, expected):
    if variant == "address":
        return {
            (
                row["address"],
                row["milestone_index"],
                row["output_id"][:64],
                int.from_bytes(bytes.fromhex(row["output_id"][64:]), "little"),
                row["amount"],
            )
            for row in expected["legacy_outputs"]
        }
    if variant == "index":
        return {
            (row["tag"], row["milestone_index"], row["message_id"], row["inclusion_state"])
            for row in expected["tags"]
        }
    return {(row["parent_id"], row["milestone_index"], row["message_id"]) for row in expected["parents"]}


def test_days_out_of_order_a_failure_half_way_and_a_rebuild(session, settings, tables, monkeypatch) -> None:
    publish(settings, tables, SECOND, "run-1")
    assert serve(session, settings, NETWORK, stores_of(settings, NETWORK)) == {"cassandra": [SECOND]}
    assert serve(session, settings, NETWORK, stores_of(settings, NETWORK)) == {"cassandra": []}

    # The first day is published later, and the store fails in the middle of it.
    publish(settings, tables, FIRST, "run-2")
    assert due(settings) == [FIRST]
    fail_at(monkeypatch, "parents")
    with pytest.raises(PermalakeError, match="cut off"):
        serve(session, settings, NETWORK, stores_of(settings, NETWORK))
    monkeypatch.undo()
    assert due(settings) == [FIRST]
    synced = {row["milestone_index"] for row in held(settings.cassandra, KEYSPACE, "sync")}
    first_milestones = range(*bounds(0))
    assert not synced & set(first_milestones)

    expected = expected_cassandra.stardust(FOLDER)
    assert serve(session, settings, NETWORK, stores_of(settings, NETWORK)) == {"cassandra": [FIRST]}
    check(settings, expected)
    before = check_lookups(settings, expected)
    assert max(partition for _, _, partition in before) > 0

    # Rebuilt with fewer rows: its last milestones are gone, with all that hung on them.
    _, end = bounds(1)
    publish(settings, tables, SECOND, "run-4", keep=lambda row: row["milestone_index"] < end - 3)
    assert serve(session, settings, NETWORK, stores_of(settings, NETWORK)) == {"cassandra": [SECOND]}
    fewer = expected_cassandra.stardust(FOLDER, before_milestone(end - 3))
    check(settings, fewer)
    # What stayed lies where it lay: no partition has more rows than before.
    after = check_lookups(settings, fewer)
    assert all(rows <= before[at] for at, rows in after.items())


@pytest.mark.long
def test_a_stardust_day_rebuilt_with_a_failure_half_way(session, settings, monkeypatch) -> None:
    first, second = (dt.date.fromisoformat(row["date"]) for row in lake_frames.read(STARDUST / "date_cache"))
    tables = rows_of(STARDUST)
    publish(settings, tables, first, "run-1", network=SHIMMER, end=second)
    assert serve(session, settings, SHIMMER, stores_of(settings, SHIMMER)) == {"cassandra": [first, second]}
    check_tables(settings, "served_shimmer", expected_cassandra.stardust(STARDUST))
    check_write_times(settings)

    _, end = bounds(1, STARDUST)
    publish(settings, tables, second, "run-2", lambda row: row["milestone_index"] < end - 3, SHIMMER)
    fail_at(monkeypatch, "tags")
    with pytest.raises(PermalakeError, match="cut off"):
        serve(session, settings, SHIMMER, stores_of(settings, SHIMMER))
    monkeypatch.undo()
    assert serve(session, settings, SHIMMER, stores_of(settings, SHIMMER)) == {"cassandra": [second]}
    fewer = expected_cassandra.stardust(STARDUST, before_milestone(end - 3))
    check_tables(settings, "served_shimmer", fewer)

    # The store loses a table: all days are due, and nothing is there twice.
    with cassandra.session(settings.cassandra) as connected:
        for view in store.TAGS.views:
            connected.execute(f"DROP MATERIALIZED VIEW served_shimmer.{view.name}", timeout=60)
        connected.execute("DROP TABLE served_shimmer.tags", timeout=60)
    assert serve(session, settings, SHIMMER, stores_of(settings, SHIMMER)) == {"cassandra": [first, second]}
    check_tables(settings, "served_shimmer", fewer)


def check_write_times(settings) -> None:
    """Rows have the write time that the catalog records, by which the API knows their publication."""
    with Database(settings.lake.catalog_uri).read() as connection:
        recorded = {day.micros for day in served.whole(connection, SHIMMER, "cassandra").values()}
    with cassandra.session(settings.cassandra) as connected:
        for table, column in (
            ("messages", "milestone_index"),
            ("transactions_by_state", "milestone_index"),
            ("milestones", "payload"),
        ):
            rows = connected.execute(f"SELECT WRITETIME({column}) AS written FROM served_shimmer.{table}")
            assert {row.written for row in rows} == recorded, table


def before_milestone(end):
    """Which expected rows a lake has whose last milestones are gone."""
    return lambda name, row: "milestone_index" not in row or name == "ledger" or row["milestone_index"] < end


def bounds(day, folder=FOLDER):
    """First milestone of a day, and the one after its last."""
    row = lake_frames.read(folder / "date_cache")[day]
    return row["start_ms"], row["end_ms"] + 1


def fail_at(monkeypatch, name) -> None:
    """A write into this table fails, once and for all."""
    write = cassandra.write
    monkeypatch.setattr(serving, "_TRIES", 1)

    def failing(frame, settings, keyspace, table, micros):
        if table.name == name:
            raise PermalakeError("cut off")
        write(frame, settings, keyspace, table, micros)

    monkeypatch.setattr(cassandra, "write", failing)


def test_a_store_that_is_down_keeps_its_days_due_and_says_why(session, settings, tables) -> None:
    publish(settings, tables, SECOND, "run-5")
    with pytest.raises(PermalakeError, match="does not answer"):
        serve(session, at(settings, free_port()), NETWORK, stores_of(at(settings, free_port()), NETWORK))
    assert due(settings) == [SECOND]
    first, second = OpenLake(settings).reader.status(NETWORK)
    assert second.stores == {"cassandra": None}
    assert any("does not answer" in note for note in second.notes)
    assert first.stores["cassandra"] > first.published


def at(settings, port):
    return settings.model_copy(update={"cassandra": settings.cassandra.model_copy(update={"port": port})})


@pytest.mark.long
def test_an_empty_store_is_filled_again_though_its_server_is_killed_meanwhile(
    session, settings, tables, mortal, monkeypatch
) -> None:
    """The second day has all its rows back, and nothing but the server is touched after the kill."""
    monkeypatch.setattr(serving, "_PAUSE_SECONDS", 1.0)
    empty = at(settings, mortal.port)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(serve, session, empty, NETWORK, stores_of(empty, NETWORK))
        wait_for_rows(empty.cassandra, run)
        os.kill(mortal.daemon.record()["pid"], signal.SIGKILL)
        assert not mortal.healthy()
        assert due(empty) == [FIRST, SECOND]
        mortal.up()
        assert run.result(timeout=300) == {"cassandra": [FIRST, SECOND]}
    check(empty, expected_cassandra.stardust(FOLDER))
    assert due(empty) == []


def wait_for_rows(settings, run) -> None:
    """Until the first rows can be read, which other tables' rows are still to follow."""
    with cassandra.session(settings) as connected:
        while not run.done():
            with suppress(InvalidRequest, NoHostAvailable):  # no such table yet, or just now
                if connected.execute(f"SELECT * FROM {KEYSPACE}.messages LIMIT 1").one():
                    return
            time.sleep(0.05)
    run.result()
    raise AssertionError("no rows came")
