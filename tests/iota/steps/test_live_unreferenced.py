"""What no milestone references yet: in the head once the node has it, never beside its referenced self."""

from __future__ import annotations

import random
import threading
import time
from datetime import timedelta

import pytest

from permalake.iota.sources.node_tips import TipWalk
from permalake.iota.steps import unreferenced
from support.iota_days import differences, expected

TANGLE = ("messages", "parents", "tags", "transactions", "ms_analytics")
OUTPUTS = ("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(unreferenced, "_PAUSE_SECONDS", 0.0)


def up_to(protocol, milestone):
    return {
        row["message_id"] for row in expected(protocol, "messages") if row["milestone_index"] <= milestone
    }


def stray(network, at):
    """A block beside one that a milestone references: it approves the same, and nothing approves it."""
    raw = bytearray.fromhex(network.node.blocks[at]["raw"])
    raw[-1] ^= 1  # of its nonce
    return network.node.add(bytes(raw))


def double_spend(network, milestone):
    """A block whose transaction spends what an included one of a milestone spends."""
    rows = expected(network.protocol, "transactions")
    included = next(
        row for row in rows if row["milestone_index"] == milestone and row["inclusion_state"] == 1
    )
    unlock = next(
        row
        for row in rows
        if row["message_id"] == included["message_id"] and row["variant"] == "unlock" and row["idx"] == 0
    )
    raw, spent = (
        bytes.fromhex(one) for one in (network.node.blocks[included["message_id"]]["raw"], unlock["data"])
    )
    at = raw.index(spent) + len(spent) - 1
    return network.node.add(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])


def wait_for(something, seconds=8) -> None:
    """Wait until there is something, but not for ever."""
    until = time.monotonic() + seconds
    while not something() and time.monotonic() < until:
        time.sleep(0.2)


def settled(network, count=12):
    """Look until every tip was told, but not more often: a node tells a few at a time."""
    for _ in range(count):
        network.follow()
        if network.unreferenced() == network.node.unreferenced():
            break
    return network.unreferenced()


def assert_rows(network, namespace, tables) -> None:
    """Tables have every row of the Stardust tangle, as days have it."""
    for name in tables:
        rows = network.rows(f"{namespace}.{name}")
        assert differences(rows, expected("stardust", name)) == ([], []), name


@pytest.mark.parametrize("protocol", ["stardust", pytest.param("chrysalis", marks=pytest.mark.long)])
def test_a_message_moves_once_a_milestone_references_it_and_strays_stay(protocol, follow) -> None:
    network = follow(protocol)
    node = network.node
    node.confirmed = network.last - 3
    node.arrive(network.last)
    strays = {
        stray(network, next(one for one in node.unreferenced())),
        double_spend(network, node.confirmed),
    }
    above = node.unreferenced()
    assert settled(network) == above
    rows = network.live("unreferenced_messages")
    assert {row["est_milestone_index"] for row in rows} == {node.confirmed + 1}
    assert {row["message_id"]: row["message"] for row in rows} == {
        one: node.blocks[one]["raw"] for one in above
    }
    while node.confirmed < network.last:
        node.confirmed += 1
        network.follow()
        assert network.unreferenced() == node.unreferenced()
        assert network.seen() == up_to(protocol, node.confirmed)
        estimates = {row["est_milestone_index"] for row in network.live("unreferenced_messages")}
        assert estimates == {node.confirmed + 1}
    assert network.unreferenced() == strays
    for name in TANGLE:
        assert differences(network.live(name), expected(protocol, name)) == ([], []), name


def test_what_is_never_referenced_leaves_by_age_and_does_not_come_back(follow, monkeypatch) -> None:
    network = follow()
    network.node.confirmed = network.last - 1
    network.node.arrive(network.last)
    assert settled(network, 4)
    network.node.add(bytes.fromhex(network.node.blocks[min(network.node.unreferenced())]["raw"])[:-1] + b"!")
    monkeypatch.setattr(unreferenced, "AGE", timedelta(0))
    network.follow("--for", "10")
    assert network.unreferenced() == set()
    network.node.confirmed = network.last
    network.follow()
    assert network.seen() == up_to("stardust", network.last)


@pytest.mark.long
def test_a_day_that_is_published_ahead_of_the_head_takes_what_it_may_reference(follow) -> None:
    network = follow()
    node = network.node
    node.confirmed = network.first + 2
    node.arrive(network.last)
    assert settled(network, 6)
    over = threading.Event()

    def read():
        while not over.is_set():
            network.unreferenced()
            looks.append(1)

    looks = []
    reader = threading.Thread(target=read)
    reader.start()
    node.confirmed = network.last
    network.publish("2022-09-28")
    assert network.unreferenced() == set()
    strays = {stray(network, one) for one in sorted(node.blocks)[:2]}
    node.confirmed = max(
        row["milestone_index"] for row in expected("stardust", "messages") if row["date"] == "2022-09-28"
    )
    later = node.unreferenced()
    assert settled(network) <= later
    assert {row["date"] for row in network.live("unreferenced_messages")} == {"2022-09-29"}
    node.confirmed = network.last
    network.follow()
    assert network.unreferenced() <= strays
    network.publish("2022-09-30")
    over.set()
    reader.join()
    assert len(looks) > 3
    assert network.unreferenced() == set()
    assert differences(network.rows("testnet.messages"), expected("stardust", "messages")) == ([], [])


def test_faults_reordered_arrival_and_a_node_that_restarts_behind_double_nothing(follow) -> None:
    network = follow(faulty=0.05, attempts=1000)
    node, chance = network.node, random.Random(5)
    node.confirmed = network.first
    over, told = threading.Event(), []

    def live_through():
        for confirmed in range(network.first + 1, network.last + 1):
            near = [one for one, row in node.blocks.items() if row["milestone"] <= confirmed + 3]
            node.arrived |= set(chance.sample(near, len(near) * 2 // 3))
            wait_for(network.unreferenced)
            node.confirmed = confirmed
            if confirmed == network.first + 6:
                node.down = "503"  # it restarts, and is behind
                time.sleep(1)
                node.confirmed = network.first + 2
                node.down = None
                time.sleep(2)

    def read():
        while not over.is_set():
            told.append(network.unreferenced())
            time.sleep(0.2)

    network.follow()
    threads = [threading.Thread(target=each) for each in (live_through, read)]
    for one in threads:
        one.start()
    while threads[0].is_alive():
        network.follow("--for", "5")
    network.follow()
    over.set()
    threads[1].join()
    assert any(told)
    assert sum(node.counts.values()) > sum(node.answered.values())
    assert network.unreferenced() == set()
    assert network.seen() == up_to("stardust", network.last)
    assert_rows(network, "testnet_live", (*TANGLE, *OUTPUTS, "address_analytics"))
    for day in ("2022-09-28", "2022-09-30"):
        network.publish(day)
    assert_rows(network, "testnet", TANGLE)


@pytest.mark.long
def test_a_node_that_falls_behind_during_a_walk_is_not_believed(follow, monkeypatch) -> None:
    network = follow()
    node = network.node
    node.arrive(network.last)
    network.follow()
    walked = TipWalk.run

    def fallen(walk):
        node.confirmed = network.last - 2
        try:
            return walked(walk)
        finally:
            node.confirmed = network.last

    monkeypatch.setattr(TipWalk, "run", fallen)
    network.follow()
    assert network.unreferenced() == set()
