"""What the tests run in processes of their own."""

from __future__ import annotations

import os
import signal
import time
from datetime import date
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from permalake.errors import PermalakeError
from permalake.lake import leases
from permalake.lake.database import Database
from permalake.lake.publish import _Publish
from support.lakes import NETWORK, OpenLake, build, pass_audit, settings_of, stage_day


def publish_days(warehouse: str, barrier: Any, days: list[tuple[date, int, int]], run_id: str) -> None:
    """Stage all days, wait for the others, then publish them one after the other."""
    settings = settings_of(warehouse)
    lake = OpenLake(settings)
    staged = []
    for number, (day, milestone, count) in enumerate(days):
        attempt = lake.begin(NETWORK, day, day, f"{run_id} {number}")
        stage_day(settings, attempt, day, milestone, count)
        staged.append(pass_audit(attempt))
    barrier.wait()
    for pinned in staged:
        lake.builds.publish(pinned)


def rebuild_often(warehouse: str, day: date, milestone: int, counts: list[int], run_id: str) -> None:
    settings = settings_of(warehouse)
    lake = OpenLake(settings)
    for number, count in enumerate(counts):
        build(settings, lake, day, milestone, count, f"{run_id} {number}")


def ensure(warehouse: str, barrier: Any) -> None:
    barrier.wait()
    OpenLake(settings_of(warehouse)).ensure(NETWORK)


def open_database(warehouse: str, barrier: Any) -> None:
    barrier.wait()
    Database(settings_of(warehouse).lake.catalog_uri)


def write_into_a_store(uri: str, barrier: Any, rounds: int, told: Any) -> None:
    """Be the only writer of a store again and again, at the same moment as others; tell what went wrong."""
    database = Database(uri)
    for number in range(rounds):
        barrier.wait(timeout=60)
        try:
            with leases.alone(database, f"network-{number}", "cassandra", f"run-{os.getpid()}", wait=30):
                began = time.monotonic()
                time.sleep(0.02)
                told.put((number, began, time.monotonic(), None))
        except (PermalakeError, SQLAlchemyError) as error:
            told.put((number, 0.0, 0.0, f"{type(error).__name__}: {error}".splitlines()[0]))


def die_while_publishing(warehouse: str, run_id: str, where: str) -> None:
    """Publish a staged attempt, but be killed at ``where``, a method of the publishing."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(_Publish, where, die)
    lake = OpenLake(settings_of(warehouse))
    lake.publish(NETWORK, run_id)
