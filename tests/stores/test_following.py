"""A store beside a live head: a slow one never holds it up, one that fails is told once and tried again."""

from __future__ import annotations

import logging
import time
from threading import Event, Semaphore

import pytest

from permalake.errors import ConfigError
from permalake.stores import following
from permalake.stores.following import Follower, StoreAttempts


@pytest.fixture
def clock(monkeypatch):
    """The time of the attempts, which the test sets."""
    now = [1000.0]
    monkeypatch.setattr(following.time, "monotonic", lambda: now[0])
    return now


def _fail():
    raise ConfigError("cassandra.contact_points: not set")


def test_an_outage_is_alerted_once_it_has_lasted_and_each_anew(clock, caplog) -> None:
    caplog.set_level(logging.INFO, "permalake")
    alerts: list[str] = []
    attempts = StoreAttempts("testnet", "Cassandra", alerts.append, 60.0)
    for _ in range(2):
        for _ in range(20):
            assert attempts.attempt(_fail) is None
            clock[0] += following.PAUSE_SECONDS
        assert attempts.attempt(lambda: 7) == 7
    reason = "Cassandra has lacked a part of the live head for 60 s: cassandra.contact_points: not set"
    assert alerts == [reason, reason]
    told = [record.message for record in caplog.records]
    begins = "live testnet: Cassandra lacks a part of the head: cassandra.contact_points: not set"
    assert told == [begins, "live testnet: Cassandra takes the head again"] * 2


def test_a_store_that_failed_is_not_asked_during_the_pause(clock) -> None:
    attempts = StoreAttempts("testnet", "Bigtable", pytest.fail, 60.0)
    attempts.attempt(_fail)
    clock[0] += following.PAUSE_SECONDS - 1
    assert attempts.attempt(pytest.fail) is None
    clock[0] += 1
    assert attempts.attempt(lambda: True) is True


class SlowStore:
    """Takes a batch each time that it is let; ``lacks`` are the batches that it has not taken."""

    def __init__(self, lacks: int) -> None:
        self.lacks, self.turns, self.is_asked = lacks, Semaphore(0), Event()

    def write(self) -> int:
        self.is_asked.set()
        assert self.turns.acquire(timeout=60)
        self.lacks = max(self.lacks - 1, 0)
        return self.lacks


def test_a_slow_store_never_holds_the_head_up(monkeypatch) -> None:
    monkeypatch.setattr(following, "TURN_SECONDS", 0.0)
    store = SlowStore(3)
    follower = Follower(store.write)
    for _ in range(5):
        follower.wake()  # returns, though nothing is taken
    assert store.is_asked.wait(60)
    assert store.lacks == 3
    store.turns.release(4)
    follower.finish()
    assert store.lacks == 0
    follower.close()


def test_between_batches_others_get_their_turn(monkeypatch) -> None:
    monkeypatch.setattr(following, "TURN_SECONDS", 60.0)
    store = SlowStore(3)
    follower = Follower(store.write)
    follower.wake()
    store.turns.release(3)
    while store.lacks == 3:
        time.sleep(0.01)
    follower.close()  # at once, though it waits
    assert store.lacks == 2


def test_a_follower_that_is_closed_ends_with_its_batch() -> None:
    store = SlowStore(1_000_000)
    follower = Follower(store.write)
    follower.wake()
    assert store.is_asked.wait(60)
    store.turns.release(1_000)
    follower.close()
    assert store.lacks > 0


def test_what_nobody_foresaw_is_raised_at_the_next_look() -> None:
    def fail() -> int:
        raise ValueError("what nobody foresaw")

    follower = Follower(fail)
    follower.wake()
    with pytest.raises(ValueError, match="what nobody foresaw"):
        follower.finish()
    with pytest.raises(ValueError, match="what nobody foresaw"):
        follower.wake()
    follower.close()
