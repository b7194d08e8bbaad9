"""One run at a time over any day; others in parallel; the dead do not block."""

from __future__ import annotations

import subprocess
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import psutil
import pytest

import permalake.lake.state
from permalake.errors import PermalakeError
from permalake.lake import leases as leasing
from permalake.lake.owner import name_of
from permalake.lake.state import leases, stamp
from support.lakes import DAY1, DAY2, DAY3, NETWORK, pass_audit, stage_day, state


def clock_off_by(off):
    """A datetime class for a machine whose clock is off."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + off

    return Wrong


def age(lake, run_id: str, by: timedelta) -> None:
    """As if the run's last sign of life were that old."""
    with lake.database.write() as connection:
        connection.execute(
            leases.update().where(leases.c.run_id == run_id).values(beat_at=stamp(datetime.now(UTC) - by))
        )


def test_another_run_of_an_overlapping_range_is_told_who_builds_it(lake) -> None:
    lake.begin(NETWORK, DAY1, DAY2, "first")
    with pytest.raises(PermalakeError) as error:
        lake.begin(NETWORK, DAY2, DAY3, "second")
    text = str(error.value)
    assert text.startswith("shimmer 2022-09-28..2022-09-29 is being built by run first since 20")
    assert "wait for it" in text
    assert "\n" not in text


@pytest.mark.parametrize("off", [timedelta(seconds=130), -timedelta(seconds=130), timedelta(days=400)])
def test_a_machine_whose_clock_is_wrong_neither_takes_nor_loses_a_lease(lake, monkeypatch, off) -> None:
    lake.begin(NETWORK, DAY1, DAY1, "first")
    lake.leave()
    wrong = clock_off_by(off)
    for module in (leasing, permalake.lake.state):
        monkeypatch.setattr(module, "datetime", wrong, raising=False)
    with pytest.raises(PermalakeError, match="is being built by run first"):
        lake.begin(NETWORK, DAY1, DAY1, "second")
    lake.begin(NETWORK, DAY2, DAY2, "wrong clock")
    lake.leave()
    monkeypatch.undo()
    with pytest.raises(PermalakeError, match="is being built by run wrong clock"):
        lake.begin(NETWORK, DAY2, DAY2, "third")


def test_other_days_other_networks_and_the_same_run_go_on_at_once(lake) -> None:
    lake.begin(NETWORK, DAY1, DAY1, "first")
    lake.begin(NETWORK, DAY2, DAY2, "second")
    lake.begin("iota", DAY1, DAY1, "third")
    assert lake.begin(NETWORK, DAY1, DAY1, "first").id == lake.resume(NETWORK, "first").id


def test_a_run_of_another_network_with_the_same_id_frees_no_days_of_this_one(lake) -> None:
    run_id = "backfill__2022-09-29T00:00:00+00:00"
    lake.begin(NETWORK, DAY1, DAY1, run_id)
    lake.begin("iota", DAY1, DAY1, run_id)
    lake.builds.release("iota", run_id)
    with pytest.raises(PermalakeError, match="shimmer 2022-09-28 is being built by run backfill"):
        lake.begin(NETWORK, DAY1, DAY1, "other")
    lake.begin("iota", DAY1, DAY1, "other")


def test_the_end_of_an_older_process_leaves_the_lease_to_a_newer_one_of_its_run(lake) -> None:
    older, newer = ExitStack(), ExitStack()
    for process in (older, newer):
        process.enter_context(leasing.alone(lake.database, NETWORK, leasing.CARRY, "run"))
        time.sleep(0.01)
    older.close()
    other = {"run_id": "other", "kind": leasing.CARRY}
    with pytest.raises(PermalakeError, match="is being carried by run run"):
        leasing.take(lake.database, NETWORK, DAY1, DAY1, **other)
    newer.close()
    leasing.take(lake.database, NETWORK, DAY1, DAY1, **other)


def test_a_waiting_run_goes_on_when_the_other_is_over(lake) -> None:
    lake.begin(NETWORK, DAY1, DAY1, "first")
    threading.Timer(1.0, lake.builds.release, [NETWORK, "first"]).start()
    began = time.monotonic()
    lake.begin(NETWORK, DAY1, DAY1, "second", wait=30)
    assert 0.9 < time.monotonic() - began < 25


def test_a_dead_run_is_taken_over_and_cannot_come_back(settings, lake) -> None:
    dead = lake.begin(NETWORK, DAY1, DAY1, "dead")
    stage_day(settings, dead, DAY1, 1, 5)
    pinned = pass_audit(dead)
    age(lake, "dead", leasing.EXPIRES_AFTER - timedelta(seconds=20))
    with pytest.raises(PermalakeError, match="is being built by run dead"):
        lake.begin(NETWORK, DAY1, DAY1, "heir")
    age(lake, "dead", leasing.EXPIRES_AFTER + timedelta(seconds=1))
    heir = lake.begin(NETWORK, DAY1, DAY1, "heir")
    with pytest.raises(PermalakeError, match="is gone; run it again"):
        lake.builds.publish(pinned)
    with pytest.raises(PermalakeError, match="was superseded"):
        lake.resume(NETWORK, "dead")
    stage_day(settings, heir, DAY1, 1, 6)
    lake.builds.publish(pass_audit(heir))
    assert state(lake) == {DAY1: (6, 6)}


def test_a_living_run_gives_signs_of_life_until_its_block_ends(lake, monkeypatch) -> None:
    monkeypatch.setattr(leasing, "BEAT_SECONDS", 0.05)
    lake.begin(NETWORK, DAY1, DAY1, "run")
    age(lake, "run", leasing.EXPIRES_AFTER * 2)
    time.sleep(5.0)
    with pytest.raises(PermalakeError, match="is being built by run run"):
        lake.begin(NETWORK, DAY1, DAY1, "other")
    lake.leave()
    time.sleep(1.0)
    age(lake, "run", leasing.EXPIRES_AFTER * 2)
    time.sleep(0.2)
    assert lake.begin(NETWORK, DAY1, DAY1, "other").run_id == "other"


def test_an_attempt_is_of_no_use_outside_its_block(settings, lake) -> None:
    with lake.builds.begin(NETWORK, DAY1, DAY1, "run") as attempt:
        stage_day(settings, attempt, DAY1, 1, 5)
    with pytest.raises(PermalakeError, match="the block of run run has ended; resume its attempt"):
        attempt.pin()
    assert lake.builds.staged(NETWORK, "run").counts()["messages"] == {DAY1: 5}
    with lake.builds.resume(NETWORK, "run") as resumed:
        assert resumed.pin().days_with_rows() == [DAY1]


def test_publishing_frees_the_days(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stage_day(settings, attempt, DAY1, 1, 5)
    lake.builds.publish(pass_audit(attempt))
    lake.begin(NETWORK, DAY1, DAY1, "next")


def test_a_run_whose_owner_is_gone_does_not_block(lake, monkeypatch) -> None:
    owner = subprocess.Popen(["sleep", "60"])
    monkeypatch.setenv(leasing.OWNER, name_of(psutil.Process(owner.pid)))
    lake.begin(NETWORK, DAY1, DAY1, "killed")
    monkeypatch.delenv(leasing.OWNER)
    with pytest.raises(PermalakeError, match="is being built by run killed"):
        lake.begin(NETWORK, DAY1, DAY1, "heir")
    owner.kill()
    owner.wait()
    assert lake.begin(NETWORK, DAY1, DAY1, "heir").run_id == "heir"


def test_an_owner_on_another_machine_is_given_its_time(lake, monkeypatch) -> None:
    monkeypatch.setenv(leasing.OWNER, "elsewhere 1 0.00")
    lake.begin(NETWORK, DAY1, DAY1, "far")
    with pytest.raises(PermalakeError, match="is being built by run far"):
        lake.begin(NETWORK, DAY1, DAY1, "near")
