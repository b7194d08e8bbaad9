"""The head of a network in a real Cassandra: provisional rows beside history, and none of them after it."""

from __future__ import annotations

import datetime as dt
import random
import time

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import load_settings
from permalake.domains import domain_of, stores_of
from permalake.errors import PermalakeError
from permalake.iota.permanode import stardust_schema as store
from permalake.iota.permanode.cassandra_head import OF_MILESTONES
from permalake.iota.permanode.chrysalis_schema import placed
from permalake.iota.permanode.provisional_rows import UNREFERENCED
from permalake.iota.steps import unreferenced
from permalake.lake.serving import LakeReader
from permalake.local.services.daemon import free_port
from permalake.stores import cassandra, following
from permalake.stores.serve import serve
from support import expected_cassandra
from support.cassandra_rows import as_set, held
from support.iota_days import SYNTHETIC, expected
from support.jobs import job
from support.lakes import pass_audit

KEYSPACE = "testnet"
BY_RANGE = (
    *(store.TAGS, store.BASIC_OUTPUTS, store.ALIAS_OUTPUTS, store.FOUNDRY_OUTPUTS, store.NFT_OUTPUTS),
    store.LEGACY_OUTPUTS,
)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(unreferenced, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(following, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def followed(follow, cassandra_server):
    """Makes a network that is followed into an empty keyspace."""

    def make(protocol="stardust", **more):
        network = follow(protocol, **more)
        reach(network, cassandra_server.port)
        drop(protocol)
        return network

    return make


def reach(network, port) -> None:
    text = network.config.read_text().partition("[cassandra]")[0]
    network.config.write_text(f'{text}[cassandra]\ncontact_points = ["127.0.0.1"]\nport = {port}\n')


def drop(protocol) -> None:
    with cassandra.session(load_settings().cassandra) as connected:
        for keyspace in {keyspace for keyspace, _ in placed("testnet", protocol)}:
            connected.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


def rows_of(table, keyspace=KEYSPACE):
    return held(load_settings().cassandra, keyspace, table.name)


def everything(protocol):
    """Every row of every table of the network."""
    tables = placed("testnet", protocol)
    return {f"{keyspace}.{table.name}": as_set(rows_of(table, keyspace)) for keyspace, table in tables}


def in_milestones(protocol, confirmed):
    """Rows of a table as days write them, of milestones up to a confirmed one."""

    def keep(name, row):
        return "milestone_index" not in row or name == "ledger" or row["milestone_index"] <= confirmed

    rows = expected_cassandra.stardust(SYNTHETIC / protocol / "expected", keep)
    day = {row["milestone_index"]: row["date"] for row in expected(protocol, "messages")}
    known = {(row["message_id"], day[row["milestone_index"]]) for row in rows["messages"]}
    for row in rows["milestones"]:
        # A message in the cone of a later day is no part of its day.
        if (row["message_id"], day[row["milestone_index"]]) not in known:
            row["message_id"] = ""
    return rows


def is_provisional(row):
    return row.get("ms_range_id") == UNREFERENCED or "est_milestone_index" in row


def assert_head(network, above) -> None:
    """Cassandra has the milestones as days have them, and ``above``, whose ids are given, apart from them."""
    protocol, confirmed = network.protocol, network.node.confirmed
    of_days = in_milestones(protocol, confirmed)
    for table in (*OF_MILESTONES, store.SYNC):
        rows = [row for row in rows_of(table) if not is_provisional(row)]
        assert as_set(rows) == as_set(of_days[table.name]), table.name
    messages = {row["message_id"]: row for row in rows_of(store.MESSAGES) if is_provisional(row)}
    assert messages.keys() == above
    assert {one: row["message"].hex() for one, row in messages.items()} == {
        one: network.node.blocks[one]["raw"] for one in above
    }
    assert not any("milestone_index" in row for row in messages.values())
    for name, key in (("tags", ("tag",)), ("parents", ("parent_id",)), ("transactions", ("transaction_id",))):
        found = {
            tuple(row[one] for one in (*key, "message_id"))
            for row in rows_of(getattr(store, name.upper()))
            if is_provisional(row)
        }
        # What no milestone ever references stands in no expected row.
        known = {row["message_id"] for row in expected(protocol, "messages")}
        assert {one for one in found if one[-1] in known} == {
            tuple(row[one] for one in (*key, "message_id"))
            for row in expected(protocol, name)
            if row["message_id"] in above
        }, name


def stray(network, at):
    """A block that no milestone references, with the contents of one that a milestone does."""
    raw = bytearray.fromhex(network.node.blocks[at]["raw"])
    raw[-1] ^= 1  # of its nonce
    return network.node.add(bytes(raw))


def settle(network, above) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        network.follow("--for", "3")
        if network.unreferenced() == above:
            return network.follow()  # until Cassandra lacks nothing
    raise AssertionError("the head does not settle")


def publish(network):
    """Build and publish every day, with all that a store has of it; return the days."""
    network.node.goes_on = True
    days = sorted({row["date"] for row in expected(network.protocol, "messages")})
    for day in days:
        argv = ["--network", network.name, "--start", day, "--end", day, "--run-id", f"day {day}"]
        job("iota_ingest")(argv, network.spark)
        job("iota_analytics")(argv, network.spark)
        network.lake.builds.publish(pass_audit(network.lake.resume(network.name, f"day {day}")))
    network.node.goes_on = False
    return [dt.date.fromisoformat(day) for day in days]


def serve_days(network):
    settings = load_settings()
    return serve(network.spark.newSession(), settings, network.name, stores_of(settings, network.name))


def ttls(table, column):
    with cassandra.session(load_settings().cassandra, plain=True) as connected:
        return {row[0] for row in connected.execute(f"SELECT TTL({column}) FROM {KEYSPACE}.{table}")}


def outputs_of(network, message_ids):
    """Ids of the outputs, but for those of chains, that the transactions of messages would create."""
    kind = "basic_outputs" if network.protocol == "stardust" else "legacy_outputs"
    return {row["output_id"] for row in expected(network.protocol, kind)} & {
        row["transaction_id"] + row["idx"].to_bytes(2, "little").hex()
        for row in expected(network.protocol, "transactions")
        if row["message_id"] in message_ids and row["variant"] == "output"
    }


def answers(network, message_ids, tmp_path):
    """What a server over the store says of messages: whether it gives one, and whether as provisional."""
    settings = load_settings()
    asked = settings.model_copy(update={"serve": settings.serve.model_copy(update={"backend": "stores"})})
    core = "v2/blocks/0x" if network.protocol == "stardust" else "v1/messages/"
    with TestClient(create_app(asked, LakeReader(asked, domain_of, cache=tmp_path / "index"))) as client:
        given = [client.get(f"/{network.name}/api/core/{core}{one}/metadata") for one in sorted(message_ids)]
    return {(one.status_code, one.headers.get("Permalake-Provisional")) for one in given}


@pytest.mark.parametrize("protocol", ["stardust", pytest.param("chrysalis", marks=pytest.mark.long)])
def test_the_head_is_in_cassandra_until_its_days_are(protocol, followed, tmp_path) -> None:
    network = followed(protocol)
    node = network.node
    node.confirmed = network.last - 3
    node.arrive(network.last)
    paying = next(
        row["message_id"]
        for row in expected(protocol, "transactions")
        if row["milestone_index"] > node.confirmed and row["inclusion_state"] == 1
    )
    strays = {stray(network, min(node.unreferenced())), stray(network, paying)}
    above = node.unreferenced()
    settle(network, above)
    assert_head(network, above)
    first_estimate = node.confirmed + 1
    made = {
        row["output_id"]
        for table in BY_RANGE[1:]
        for row in rows_of(table)
        if is_provisional(row) and row["milestone_index"] == first_estimate
    }
    assert made >= outputs_of(network, above) > set()
    # Of a column that a row lacks there is none.
    assert all(80_000 < one <= 86_400 for one in ttls("messages", "est_milestone_index") - {None})
    assert all(80_000 < one <= 86_400 for one in ttls("messages", "milestone_index") - {None})
    assert all(40_000 < one <= 43_200 for one in ttls("sync", "synced_by"))
    asked = sorted(above)[:5] + sorted(node.blocks)[:5]
    assert answers(network, asked, tmp_path) == {(200, "true")}

    node.confirmed = network.last - 1
    network.follow()
    settle(network, node.unreferenced())
    assert_head(network, node.unreferenced())
    estimates = {row["est_milestone_index"] for row in rows_of(store.MESSAGES) if is_provisional(row)}
    assert estimates == {first_estimate}, "the first estimate stays"
    node.confirmed = network.last
    network.follow()
    assert_head(network, strays)

    days = publish(network)
    assert serve_days(network) == {"cassandra": days}
    served = everything(protocol)
    assert not any(is_provisional(dict(row)) for rows in served.values() for row in rows)
    for table, column in (("messages", "milestone_index"), ("milestones", "payload"), ("sync", "synced_by")):
        assert ttls(table, column) == {None}
    node.arrived -= strays  # a node that has them still tells them: they are above the new head
    network.follow()
    assert everything(protocol) == served
    drop(protocol)
    assert serve_days(network) == {"cassandra": days}
    without_head = everything(protocol)
    for name, rows in without_head.items():
        assert served[name] == rows, name


@pytest.mark.long
def test_a_cassandra_that_fails_or_is_away_delays_its_rows_alone(followed, caplog, monkeypatch) -> None:
    network = followed()
    node, port = network.node, load_settings().cassandra.port
    node.confirmed = network.first + 4
    node.arrive(network.first + 6)
    reach(network, free_port())
    with caplog.at_level("INFO", "permalake"):
        network.follow()
    assert len([line for line in caplog.messages if "Cassandra lacks a part of the head" in line]) == 1
    assert {row["milestone_index"] for row in network.live("milestones")} == set(
        range(network.first, node.confirmed + 1)
    )

    reach(network, port)
    chance = random.Random(3)
    execute = cassandra._execute

    def shaky(connected, statement, rows):
        rows = list(rows)
        if chance.random() < 0.2:
            execute(connected, statement, rows[: len(rows) // 2])
            raise PermalakeError("cut off")
        execute(connected, statement, rows)

    with monkeypatch.context() as patch:
        patch.setattr(cassandra, "_execute", shaky)
        network.follow()
        node.confirmed = network.last - 1
        node.arrive(network.last)
        network.follow()
    settle(network, node.unreferenced())
    assert_head(network, node.unreferenced())


def test_rows_that_no_day_replaces_vanish_after_their_time(followed) -> None:
    network = followed(provisional_seconds=30)
    network.node.confirmed = network.first + 2
    network.node.arrive(network.first + 4)
    settle(network, network.node.unreferenced())
    network.follow()
    assert rows_of(store.MESSAGES)
    until = time.monotonic() + 120
    while any(everything("stardust").values()) and time.monotonic() < until:
        time.sleep(3)
    assert not any(everything("stardust").values())
