"""The REST API over stores: of one published state, and an outage that it survives."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from datetime import date

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.errors import ConfigError
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.iota.permanode.stardust_schema import MESSAGES, MILESTONES, SYNC
from permalake.lake.identity import open_database
from permalake.lake.serving import LakeReader
from permalake.stores import cassandra, cassandra_reader, served
from support import served_stores
from support.served_lakes import NETWORKS, expected

SHIMMER = NETWORKS["stardust"]
KEYSPACE = keyspace_of(SHIMMER)
BLOCKS = f"/{SHIMMER}/api/core/v2/blocks"
CHILDREN = f"/api/permanode/v1/{SHIMMER}/messages"
OWN = "ab" * 32
"""Id of a block that is in the store alone."""
DRIVER_SECONDS = 10
"""The driver's own patience with a request."""
CONFIRMED = 200
"""Rows whose writes are confirmed one by one right before the server is killed."""


@contextmanager
def client_of(settings, index):
    reader = LakeReader(settings, domain_of, cache=index)
    with TestClient(create_app(settings, reader)) as client:
        yield client


@pytest.fixture(scope="module")
def settings(stored_settings):
    return stored_settings


@pytest.fixture(scope="module")
def client(settings, tmp_path_factory):
    with client_of(settings, tmp_path_factory.mktemp("index")) as client:
        yield client


@pytest.fixture(scope="module")
def session(settings):
    with cassandra.session(settings.cassandra) as session:
        yield session


def block(**own):
    """The world's first block as a row of the store, changed."""
    row = expected("stardust", "messages")[0]
    found = {name: row[name] for name in ("version", "milestone_index", "inclusion_state", "conflict_reason")}
    return found | {"message_id": OWN, "message": bytes.fromhex(row["message"])} | own


def put_block(session, **own) -> None:
    served_stores.put(session, f"{KEYSPACE}.messages", [block(**own)])


def test_a_row_is_shown_while_its_day_is_held_and_its_milestone_synced(client, session, settings) -> None:
    index = block()["milestone_index"]
    [chunk] = [
        row["ms_range_id"] for row in expected("stardust", "ms_analytics") if row["milestone_index"] == index
    ]
    where = f"WHERE ms_range_id = {chunk} AND milestone_index = {index}"
    assert client.get(f"{BLOCKS}/{OWN}").status_code == 404
    put_block(session)
    assert client.get(f"{BLOCKS}/{OWN}").status_code == 200
    session.execute(f"DELETE FROM {KEYSPACE}.sync {where}")
    assert client.get(f"{BLOCKS}/{OWN}").status_code == 404
    # What the lake has is answered all the same.
    assert client.get(f"{BLOCKS}/{expected('stardust', 'messages')[0]['message_id']}").status_code == 200
    put(session, "sync", ms_range_id=chunk, milestone_index=index, synced_by=0, logged_by=0)
    assert client.get(f"{BLOCKS}/{OWN}").status_code == 200

    # A milestone of no published day, though the store says that it is whole.
    session.execute(f"DELETE FROM {KEYSPACE}.messages WHERE message_id = '{OWN}'")
    put_block(session, milestone_index=index + 5000)
    put(session, "sync", ms_range_id=chunk, milestone_index=index + 5000, synced_by=0, logged_by=0)
    assert client.get(f"{BLOCKS}/{OWN}").status_code == 404
    session.execute(f"DELETE FROM {KEYSPACE}.messages WHERE message_id = '{OWN}'")


def test_a_row_that_no_milestone_references_is_no_history(client, session) -> None:
    """Another permanode that shares the keyspace inserts a message before a milestone references it."""
    for name in OWN, "ef" * 32:
        row = block(message_id=name, milestone_index=None, inclusion_state=None, conflict_reason=None)
        served_stores.put(session, f"{KEYSPACE}.messages", [row | {"est_milestone_index": 250_001}])
        assert client.get(f"{BLOCKS}/{name}").status_code == 404
        assert client.get(f"{BLOCKS}/{name}/metadata").status_code == 404
        session.execute(f"DELETE FROM {KEYSPACE}.messages WHERE message_id = '{name}'")


def test_a_row_with_the_write_time_of_its_day_needs_no_second_question(client, session, settings) -> None:
    # An id of its own: what other tests delete is younger than the day's rows.
    own = "cd" * 32
    row = block(message_id=own)
    [chunk] = [
        one["ms_range_id"]
        for one in expected("stardust", "ms_analytics")
        if one["milestone_index"] == row["milestone_index"]
    ]
    key = f"ms_range_id = {chunk} AND milestone_index = {row['milestone_index']}"
    [day] = [
        date.fromisoformat(one["date"])
        for one in expected("stardust", "date_cache")
        if one["start_ms"] <= row["milestone_index"] <= one["end_ms"]
    ]
    with open_database(settings).read() as connection:
        written = served.whole(connection, SHIMMER, "cassandra")[day].micros
    session.execute(f"DELETE FROM {KEYSPACE}.sync WHERE {key}")
    for micros, status in ((written - 1, 404), (written, 200), (written + 3, 404)):
        served_stores.put(session, f"{KEYSPACE}.messages", [row], micros)
        assert client.get(f"{BLOCKS}/{own}").status_code == status
    session.execute(f"DELETE FROM {KEYSPACE}.messages WHERE message_id = '{own}'")
    put(
        session,
        "sync",
        ms_range_id=chunk,
        milestone_index=row["milestone_index"],
        synced_by=0,
        logged_by=0,
    )


def put(session, table, **row) -> None:
    served_stores.put(session, f"{KEYSPACE}.{table}", [row])


def test_days_that_the_store_lacks_come_from_the_lake(client, session, settings) -> None:
    """Lists of both days are whole and in order, whichever day the store holds."""
    days = [row["date"] for row in expected("stardust", "date_cache")]
    first, last = (min(days), max(days))
    popular = max((row["parent_id"] for row in expected("stardust", "parents")), key=children().count)
    tags = [row["tag"] for row in expected("stardust", "tags")]
    spread = max(set(tags), key=tags.count)
    lists = [
        (f"{CHILDREN}/{popular}/children", "childrenMessageIds"),
        (f"{CHILDREN}?index={spread}", "messageIds"),
    ]
    whole = [walked(client, path, name) for path, name in lists]
    assert all(found for found in whole)
    database = open_database(settings)
    for missing in (first, last):
        with database.write() as connection:
            day = next(
                one for one in served.whole(connection, SHIMMER, "cassandra") if one.isoformat() == missing
            )
            served.forget(connection, SHIMMER, "cassandra", day, day)
        client.app.state.stores.refresh()
        assert [walked(client, path, name) for path, name in lists] == whole
        put_block(session)
        held = missing != first
        assert client.get(f"{BLOCKS}/{OWN}").status_code == (200 if held else 404)
        session.execute(f"DELETE FROM {KEYSPACE}.messages WHERE message_id = '{OWN}'")
        served_stores.note(settings, SHIMMER, "cassandra")
        client.app.state.stores.refresh()


def children():
    return [row["parent_id"] for row in expected("stardust", "parents")]


def walked(client, path, name, size=3):
    """All items of a list, in both orders, page by page."""
    found = []
    for sort in ("newest", "oldest"):
        cursor = None
        while True:
            query = {"pageSize": size, "sort": sort, **({"cursor": cursor} if cursor else {})}
            answer = client.get(client.base_url.join(path).copy_merge_params(query))
            assert answer.status_code == 200, answer.text
            found += answer.json()["data"][name]
            cursor = answer.json()["data"].get("cursor")
            if cursor is None:
                break
    assert found[: len(found) // 2] == found[len(found) // 2 :][::-1]
    return found


def test_queries_are_told_to_metrics(client) -> None:
    client.get(f"{BLOCKS}/{expected('stardust', 'messages')[1]['message_id']}")
    assert (
        'permalake_backend_seconds_count{backend="cassandra",query="messages"}' in client.get("/metrics").text
    )


def test_stores_must_be_configured(config, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_SERVE__BACKEND", "stores")
    with pytest.raises(ConfigError, match=r"serve\.backend: no store is configured"):
        load_settings(config)


def test_a_stopped_cassandra_is_503_within_the_timeout_and_found_again_with_what_it_confirmed(
    served_settings, mortal, tmp_path, monkeypatch
) -> None:
    settings = served_stores.with_cassandra(served_settings, mortal.port)
    served_stores.create(settings, SHIMMER, (MESSAGES, MILESTONES, SYNC))
    with cassandra.session(settings.cassandra) as session:
        put_block(session)
        for row in expected("stardust", "ms_analytics"):
            key = {name: row[name] for name in ("ms_range_id", "milestone_index")}
            put(session, "sync", **key, synced_by=0, logged_by=0)
    served_stores.note(settings, SHIMMER, "cassandra")
    monkeypatch.setattr(cassandra_reader, "SECONDS", 1.0)
    path, health = f"{BLOCKS}/{OWN}", f"/{SHIMMER}/health"
    with client_of(settings, tmp_path) as client:
        for asked in (path, health):
            assert_back(client, asked)
        process = mortal.daemon.record()["pid"]

        os.kill(process, signal.SIGSTOP)
        assert_away(client, path)
        os.kill(process, signal.SIGCONT)
        assert_back(client, path)

        with cassandra.session(settings.cassandra, plain=True) as session:
            confirm(session)
            os.kill(process, signal.SIGKILL)
        assert_away(client, path)
        assert (client.get(health).status_code, client.get("/health").status_code) == (503, 503)
        # The lake answers what is not asked of the store.
        assert client.get(f"/api/permanode/v1/{SHIMMER}/sync").status_code == 200
        mortal.up()
        for asked in (path, health):
            assert_back(client, asked)
    with cassandra.session(settings.cassandra, plain=True) as session:
        assert session.execute(f"SELECT count(*) FROM {KEYSPACE}.confirmed").one() == (CONFIRMED,)


def confirm(session) -> None:
    """Write rows into a table of their own, each when the one before is confirmed."""
    session.execute(f"CREATE TABLE {KEYSPACE}.confirmed (number int PRIMARY KEY)")
    insert = session.prepare(f"INSERT INTO {KEYSPACE}.confirmed (number) VALUES (?)")
    for number in range(CONFIRMED):
        session.execute(insert, [number])


def assert_away(client, path) -> None:
    began = time.monotonic()
    answer = client.get(path)
    assert time.monotonic() - began < DRIVER_SECONDS
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "503")
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["detail"] == "Cassandra does not answer; try again"


def assert_back(client, path) -> None:
    until = time.monotonic() + 120
    while (answer := client.get(path)).status_code != 200:
        assert answer.status_code == 503
        assert time.monotonic() < until
        time.sleep(0.2)
