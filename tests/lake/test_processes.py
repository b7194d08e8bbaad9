"""Several processes at the lake at once, and processes that die."""

from __future__ import annotations

import multiprocessing
import signal

import pytest

from permalake.iota.contracts import IOTA_TABLES
from permalake.lake.catalog import locations
from support import lake_processes
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, pass_audit, stage_day, state

spawn = multiprocessing.get_context("spawn")


def start(target, *args):
    process = spawn.Process(target=target, args=args)
    process.start()
    return process


def joined(*processes) -> list[int | None]:
    for process in processes:
        process.join(timeout=120)
    return [process.exitcode for process in processes]


def test_processes_that_create_the_lake_at_once_make_one(settings, lake) -> None:
    barrier = spawn.Barrier(3)
    racing = [start(lake_processes.ensure, settings.lake.warehouse, barrier) for _ in range(3)]
    assert joined(*racing) == [0, 0, 0]
    assert lake.reader.locations(NETWORK).keys() == IOTA_TABLES.keys()


def test_two_days_published_at_the_same_moment_are_both_there(settings, lake) -> None:
    lake.ensure(NETWORK)
    barrier = spawn.Barrier(2)
    one = start(
        lake_processes.publish_days, settings.lake.warehouse, barrier, [(DAY1, 1, 5), (DAY3, 3, 9)], "one"
    )
    two = start(lake_processes.publish_days, settings.lake.warehouse, barrier, [(DAY2, 2, 7)], "two")
    assert joined(one, two) == [0, 0]
    assert state(lake) == {DAY1: (5, 5), DAY2: (7, 7), DAY3: (9, 9)}


def test_readers_never_see_a_mixed_state(settings, lake) -> None:
    """Two processes rebuild their days with changing rows; every read of two tables agrees, on every day."""
    build(settings, lake, DAY1, 1, 1, "first")
    writers = [
        start(lake_processes.rebuild_often, settings.lake.warehouse, DAY1, 1, [2, 3, 4, 5], "one"),
        start(lake_processes.rebuild_often, settings.lake.warehouse, DAY2, 2, [6, 7, 8, 9], "two"),
    ]
    seen = set()
    while any(writer.is_alive() for writer in writers):
        for day, (counted, told) in state(lake).items():
            assert counted == told, f"{day}: {counted} messages, {told} in ms_analytics"
            seen.add((day, counted))
    assert joined(*writers) == [0, 0]
    assert state(lake) == {DAY1: (5, 5), DAY2: (9, 9)}
    assert len(seen) > 2


@pytest.mark.parametrize("where", ["move", "_record"])
@pytest.mark.parametrize("disturbed", [False, True])
def test_a_killed_publisher_has_published_nothing_and_the_repeat_publishes_all(
    settings, lake, where, disturbed
) -> None:
    """Killed before the transaction (``move``), or inside it with all pointers moved (``_record``)."""
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    pass_audit(attempt)
    if disturbed:
        build(settings, lake, DAY2, 2, 7, "other")
    before = lake.reader.locations(NETWORK)
    victim = start(lake_processes.die_while_publishing, settings.lake.warehouse, "run", where)
    assert joined(victim) == [-signal.SIGKILL]
    others = {DAY2: (7, 7)} if disturbed else {}
    assert lake.reader.locations(NETWORK) == before
    assert state(lake) == others
    again = OpenLake(settings)
    assert again.publish(NETWORK, "run").replayed == disturbed
    assert state(lake) == {DAY1: (5, 5)} | others
    with lake.database.read() as connection:
        assert locations(connection, f"{attempt.id}_replay", NETWORK) == {}
