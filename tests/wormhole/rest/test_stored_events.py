"""Messages out of Bigtable: while it holds their day, equal to the lake, and 503 when it does not answer."""

from __future__ import annotations

import base64
import os
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from permalake.lake.head_edit import drop_head
from permalake.lake.head_position import Reached
from permalake.lake.identity import open_database
from permalake.stores import bigtable, bigtable_reader, served
from support import served_stores
from support.heads import follow_day

pytestmark = pytest.mark.parametrize("world", ["bigtable_server"], indirect=True)


def a_message(world):
    """A message of a real day: its row key, day, and the path of its bytes."""
    row = next(
        r for r in world.rows["message_publication"] if r["timestamp"] > datetime(2024, 1, 1, tzinfo=UTC)
    )
    chain, emitter, sequence = row["row_key"].split(":")
    return row, f"/wormhole/v1/signed_vaa/{chain}/{emitter}/{int(sequence)}"


def test_a_row_of_the_store_is_shown_while_its_day_is_held(world) -> None:
    row, path = a_message(world)
    [state] = [r for r in world.rows["quorum_state"] if r["row_key"] == row["row_key"]]
    put(world, row, b"other bytes")
    assert base64.b64decode(world.get(path)["vaaBytes"]) == b"other bytes"
    with open_database(world.settings).write() as connection:
        served.forget(connection, "wormhole", "bigtable", row["date"], row["date"])
    world.client.app.state.stores.refresh()
    assert base64.b64decode(world.get(path)["vaaBytes"]) == state["signed_vaa"]
    put(world, row, state["signed_vaa"])
    served_stores.note(world.settings, "wormhole", "bigtable")
    world.client.app.state.stores.refresh()
    assert base64.b64decode(world.get(path)["vaaBytes"]) == state["signed_vaa"]


def put(world, row, signed) -> None:
    own = world.settings.bigtable
    event = bigtable._instance(own).table(own.table).direct_row(row["row_key"].encode())
    event.set_cell("QuorumState", "SignedVAA", signed)
    event.commit()


def test_a_row_of_the_head_is_no_history(world) -> None:
    """Bigtable has rows of the live head, too; they are answered from the lake, and marked."""
    row, path = a_message(world)
    day = row["date"] + timedelta(days=30)
    key = f"{row['row_key'][:-4]}9999"
    path = f"{path.rpartition('/')[0]}/{int(key.rpartition(':')[2])}"
    put(world, {"row_key": key}, b"of the head")
    own = world.settings.bigtable
    event = bigtable._instance(own).table(own.table).direct_row(key.encode())
    event.set_cell("MessagePublication", "Timestamp", f"{day}T00:00:00Z")
    event.commit()
    assert world.client.get(path).status_code == 404
    moved = {"row_key": key, "date": day}
    [state] = [r for r in world.rows["quorum_state"] if r["row_key"] == row["row_key"]]
    rows = {"quorum_state": [state | moved], "message_publication": [row | moved]}
    rows["message_publication"][0]["timestamp"] = row["timestamp"] + timedelta(days=30)
    second = int(rows["message_publication"][0]["timestamp"].timestamp())
    follow_day(world.settings, "wormhole", rows, tuple(rows), day, Reached(None, second, {}))
    try:
        world.client.app.state.reader.refresh()
        answer = world.client.get(path)
        assert answer.status_code == 200
        assert answer.headers["permalake-provisional"] == "true"
        assert base64.b64decode(answer.json()["vaaBytes"]) == state["signed_vaa"]
    finally:
        with open_database(world.settings).write() as connection:
            drop_head(connection, "wormhole")


def test_every_row_of_every_table_is_as_in_the_lake(world) -> None:
    """Columns without cells are decoded from the VAA; a row of nulls is a row all the same."""
    key = next(r["row_key"] for r in world.rows["token_transfer_payload"] if r["fee"] is not None)
    other = next(r["row_key"] for r in world.rows["token_transfer_payload"] if r["app_payload"])
    for row_key in (key, other):
        chain, emitter, sequence = row_key.split(":")
        found = world.get(f"/api/wormhole/v1/events/{chain}/{emitter}/{int(sequence)}")
        for table in ("message_publication", "token_transfer_payload", "chain_details"):
            [wanted] = [r for r in world.rows[table] if r["row_key"] == row_key]
            assert {name: str(value) for name, value in found[table].items()} == {
                name: shown(value) for name, value in wanted.items()
            }, table


def shown(value):
    if isinstance(value, bytes):
        return value.hex()
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value)


def test_a_store_that_does_not_answer_is_503_and_found_again(world, bigtable_server, monkeypatch) -> None:
    monkeypatch.setattr(bigtable_reader, "SECONDS", 1.0)
    _, path = a_message(world)
    process = bigtable_server.daemon.record()["pid"]
    os.kill(process, signal.SIGSTOP)
    try:
        began = time.monotonic()
        answer = world.client.get(path)
        assert time.monotonic() - began < 30, "the client's own time is longer"
        assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
        assert answer.json()["detail"] == "Bigtable does not answer; try again"
        assert world.client.get("/health").status_code == 503
        # The lake answers what is not asked of the store.
        assert world.client.get("/api/wormhole/v1/totals").status_code == 200
    finally:
        os.kill(process, signal.SIGCONT)
    until = time.monotonic() + 120
    while world.client.get(path).status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.2)
