"""A VAA in the head, and another one of its message on a published day: the head refuses its own."""

from __future__ import annotations

import pytest

from support.live_wormhole import DAYS, LiveWormhole, documents

KEY = "30:0000000000000000000000008d2de8d2f73f1f4cab472ac9a881c9b123c79627:0000000000499871"


@pytest.fixture
def world(spark, tmp_path, monkeypatch):
    return LiveWormhole(spark, tmp_path, monkeypatch)


def lines_of_both():
    """The two VAAs of the message, of the first and the second day, and others of the second."""
    chain, emitter, sequence = KEY.split(":")
    claimed = f"{chain}/{emitter}/{int(sequence)}".encode()
    first, second = (line for line in documents() if claimed in line[1])
    return first, second, [line for line in documents() if line[0] == second[0] and line != second]


def append(world, *lines) -> None:
    for name, line in lines:
        world.append(name, [line])


def assert_published_alone(world) -> None:
    rows = world.rows("wormhole.message_publication_with_live")
    assert [row["provisional"] for row in rows if row["row_key"] == KEY] == [False]
    refused = [row for row in world.live("quarantine") if row["reason"] == "conflicting_digest"]
    assert DAYS[1] in {row["date"] for row in refused}


def test_what_comes_after_the_publication_is_refused(world) -> None:
    first, second, others = lines_of_both()
    append(world, first)
    world.publish(DAYS[0])
    assert [row["row_key"] for row in world.rows("wormhole.message_publication")] == [KEY]
    append(world, *others[:20])
    for _ in range(2):
        append(world, second)
        world.follow()
        assert_published_alone(world)


def test_what_was_there_before_the_publication_leaves_with_the_next_batch(world) -> None:
    first, second, others = lines_of_both()
    append(world, second)
    world.follow()
    assert world.seen() == {KEY}
    # The day is built from another source, which has the other VAA.
    (world.input / second[0]).unlink()
    append(world, first)
    world.publish(DAYS[0])
    (world.input / first[0]).unlink()
    append(world, *others[:20])
    world.follow()
    assert_published_alone(world)
