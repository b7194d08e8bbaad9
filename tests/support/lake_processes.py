"""What the tests run in processes of their own."""

from __future__ import annotations

import os
import signal
from datetime import date
from typing import Any

from permalake.lake.publish import _Publish
from permalake.lake.state import Database
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


def die_while_publishing(warehouse: str, run_id: str, where: str) -> None:
    """Publish a staged attempt, but be killed at ``where``, a method of the publishing."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(_Publish, where, die)
    lake = OpenLake(settings_of(warehouse))
    lake.publish(NETWORK, run_id)
