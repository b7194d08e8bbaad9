"""Messages out of Bigtable: while it holds their day, equal to the lake, and 503 when it does not answer."""

from __future__ import annotations

import base64
import os
import signal
import time
from datetime import UTC, datetime

import pytest

from permalake.lake.identity import open_database
from permalake.stores import bigtable, bigtable_reader, served
from support import served_stores

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
