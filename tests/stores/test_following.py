"""A store that fails beside a live head: left alone for a while, told once, tried again."""

from __future__ import annotations

import logging

import pytest

from permalake.errors import ConfigError
from permalake.stores import following
from permalake.stores.following import StoreAttempts


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
