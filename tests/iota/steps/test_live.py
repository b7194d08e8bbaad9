"""A network followed live: the head has exactly what the node has confirmed, whatever happens to either."""

from __future__ import annotations

import random
import threading
import time

import pytest

from permalake.errors import ConfigError, PermalakeError
from permalake.iota.steps.live import LIVE_TABLES
from permalake.lake.head import Head
from support.iota_days import differences, expected
from support.length import LONG

TANGLE = ("messages", "parents", "tags", "transactions")
OUTPUTS = {
    "stardust": ("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs"),
    "chrysalis": ("legacy_outputs", "treasury_outputs"),
}


def up_to(protocol, milestone):
    return {
        row["message_id"] for row in expected(protocol, "messages") if row["milestone_index"] <= milestone
    }


def assert_all(network) -> None:
    """The head has every row of the tangle, once, as a day has it."""
    protocol = network.protocol
    assert network.seen() == up_to(protocol, network.last)
    for name in (*TANGLE, *OUTPUTS[protocol], "ms_analytics", "address_analytics"):
        assert differences(network.live(name), expected(protocol, name)) == ([], []), name


@pytest.mark.parametrize("protocol", ["stardust", pytest.param("chrysalis", marks=pytest.mark.long)])
def test_the_head_grows_with_the_node_and_has_the_rows_of_days(protocol, follow) -> None:
    network = follow(protocol, batch_milestones=3)
    for confirmed in (network.first + 3, network.first + 4, network.last - 1):
        network.node.confirmed = confirmed
        network.follow()
        assert network.seen() == up_to(protocol, confirmed)
        assert {row["provisional"] for row in network.rows("testnet.messages_with_live")} == {True}
    network.node.confirmed = network.last
    network.follow()
    assert_all(network)
    before = network.node.answered.total()
    network.follow()
    assert network.node.answered.total() - before <= 9, "what is there is not asked for again"


@pytest.mark.long
def test_milestones_get_their_message_once_a_later_cone_brings_it(follow) -> None:
    network = follow(batch_milestones=1)
    network.follow()
    rows = expected("stardust", "milestones")
    # A message in the cone of a later day is no part of its day.
    rows = [row | {"message_id": None} if row["milestone_index"] == 249_999 else row for row in rows]
    assert differences(network.live("milestones"), rows) == ([], [])


def test_a_published_day_takes_the_place_of_its_head(follow) -> None:
    network = follow(batch_milestones=3)
    network.follow()
    everything = network.seen()
    counts, over = [], threading.Event()

    def read():
        while not over.is_set():
            counts.append(len(network.seen()))

    reader = threading.Thread(target=read)
    reader.start()
    network.publish("2022-09-28")
    over.set()
    reader.join()
    assert set(counts) == {len(everything)}
    assert {row["date"] for row in network.live("messages")} == {"2022-09-30"}
    network.follow()
    assert network.seen() == everything
    network.publish("2022-09-30")
    assert not any(network.live(name) for name in LIVE_TABLES)
    assert differences(network.rows("testnet.messages"), expected("stardust", "messages")) == ([], [])
    network.follow()
    assert not any(network.live(name) for name in LIVE_TABLES)


def test_a_head_begins_after_the_last_published_day(follow) -> None:
    network = follow()
    network.publish("2022-09-28")
    network.follow()
    assert {row["date"] for row in network.live("messages")} == {"2022-09-30"}
    assert network.seen() == up_to("stardust", network.last)


def test_a_head_holds_no_more_days_than_it_may(follow) -> None:
    network = follow(days=1)
    network.node.confirmed = network.first + 2
    network.follow()
    assert {row["date"] for row in network.live("messages")} == {"2022-09-28"}
    network.node.confirmed = network.last
    network.follow()
    assert {row["date"] for row in network.live("messages")} == {"2022-09-30"}


@pytest.mark.long
def test_a_node_that_misbehaves_and_falls_back_loses_and_doubles_nothing(follow) -> None:
    network = follow(faulty=0.05, attempts=1000)
    node = network.node

    def live_through():
        for confirmed in range(network.first + 1, network.last + 1):
            node.confirmed = confirmed
            time.sleep(0.3)
            if confirmed == network.first + 6:
                node.down = "503"  # it restarts, and is behind
                time.sleep(1)
                node.confirmed = network.first + 2
                node.down = None
                time.sleep(1)

    node.confirmed = network.first
    world = threading.Thread(target=live_through)
    world.start()
    network.follow("--for", "12")
    world.join()
    network.follow()
    assert_all(network)
    assert sum(node.counts.values()) > sum(node.answered.values())


POINTS = (
    "permalake.iota.steps.live.NodeSource.refresh",
    "permalake.iota.steps.live.decoded_days",
    "permalake.iota.steps.live.resolve",
    "permalake.iota.steps.live.few_rows",
    "permalake.lake.head.TaskFiles.complete",
    "permalake.lake.head.prepare",
    "permalake.lake.head_edit.copy_pointers",
    "permalake.lake.head_edit._change",
    "permalake.lake.head_edit.HeadEdit.apply",
    "after",
)


class Killed(BaseException):
    """The end of a process, as far as one test process can have it."""


@pytest.mark.scaled
def test_killed_anywhere_nothing_is_lost_and_nothing_twice(follow, monkeypatch) -> None:
    network = follow(batch_milestones=2)
    committed = Head.commit

    def die(*_given, **_more):
        raise Killed

    def added(*given, **more):
        committed(*given, **more)
        raise Killed

    chance = random.Random(41)
    network.node.confirmed = network.first
    network.follow()
    for point in chance.sample(POINTS * 2, 20 if LONG else 5):
        if network.seen() == up_to("stardust", network.node.confirmed):
            network.node.confirmed += 1
        with monkeypatch.context() as patch:
            patch.setattr(*((Head, "commit", added) if point == "after" else (point, die)))
            with pytest.raises(Killed):
                network.follow()
        assert network.seen() <= up_to("stardust", network.node.confirmed)
        if chance.random() < 0.5:
            network.follow()
            assert network.seen() == up_to("stardust", network.node.confirmed)
    network.node.confirmed = network.last
    network.follow()
    assert_all(network)


@pytest.mark.long
def test_a_node_of_another_tangle_is_told(follow, spark) -> None:
    network = follow(attempts=2)
    network.node.confirmed = network.last - 2
    network.follow()
    row = network.node.milestones[network.last - 2]
    raw = bytearray.fromhex(row["rawPayload"].removeprefix("0x"))
    raw[8] ^= 1  # its time
    network.node.milestones[network.last - 2] = row | {"rawPayload": "0x" + raw.hex()}
    with pytest.raises(PermalakeError, match=rf"the node's milestone {network.last - 2} is .* has proven"):
        network.follow()
    assert network.seen() == up_to("stardust", network.last - 2)


def test_what_does_not_hold_is_not_added(follow) -> None:
    network = follow(attempts=2)
    network.node.confirmed = network.first + 1
    network.follow()
    network.node.confirmed = network.first + 2
    spoilt = next(b for b in network.node.blocks.values() if b["milestone"] == network.first + 2)
    spoilt["milestone"] = spoilt["metadata"]["referencedByMilestoneIndex"] = network.first + 1
    with pytest.raises(PermalakeError, match=f"milestone {network.first + 2}: "):
        network.follow()
    assert network.seen() == up_to("stardust", network.first + 1)


def test_only_a_node_can_be_followed(follow) -> None:
    network = follow()
    archive = f'source = "archive_rest"\npath = "{network.config.parent}"'
    network.config.write_text(network.config.read_text().replace('source = "node"', archive))
    with pytest.raises(ConfigError, match=r"networks.testnet.source: archive_rest does not grow; set 'node'"):
        network.follow()
