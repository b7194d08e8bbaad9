"""The ids of scheduled runs, as Airflow's scheduler makes them from what it stored of the DAG."""

from __future__ import annotations

import re

import pendulum
import pytest
from airflow import plugins_manager
from airflow.models.dagrun import DagRun
from airflow.serialization.decoders import decode_timetable
from airflow.serialization.encoders import encode_timetable
from airflow.timetables.base import DataInterval
from airflow.utils.types import DagRunType

from permalake.orchestrate.timetable import UtcDays
from permalake.paths import PLUGINS

MIDNIGHT = pendulum.datetime(2022, 9, 29)
DAY = DataInterval(MIDNIGHT.subtract(days=1), MIDNIGHT)


@pytest.fixture
def stored(monkeypatch, config):
    """The timetable of a domain, from the JSON that Airflow keeps of it."""
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setattr("airflow.settings.PLUGINS_FOLDER", str(PLUGINS))
    for kept in (plugins_manager._get_plugins, plugins_manager.get_timetables_plugins):
        kept.cache_clear()
    return lambda domain: decode_timetable(encode_timetable(UtcDays(domain)))


def run_id(timetable, run_type, interval=DAY):
    return timetable.generate_run_id(run_type=run_type, run_after=MIDNIGHT, data_interval=interval)


@pytest.mark.parametrize(("domain", "network"), [("iota", "shimmer"), ("wormhole", "wormhole")])
def test_a_scheduled_run_is_called_by_network_and_day(stored, domain, network) -> None:
    name = run_id(stored(domain), DagRunType.SCHEDULED)
    assert name == f"{network}_2022-09-28__scheduled"
    assert re.fullmatch(r"[A-Za-z0-9_.~:+-]+", name)
    assert DagRunType.from_run_id(name) == DagRunType.MANUAL, "no other run may be refused for this name"


@pytest.mark.parametrize("run_type", [DagRunType.MANUAL, DagRunType.BACKFILL_JOB])
def test_runs_of_which_airflow_does_not_say_what_they_are_for_have_its_own_ids(stored, run_type) -> None:
    assert run_id(stored("iota"), run_type) == DagRun.generate_run_id(
        run_type=run_type, logical_date=MIDNIGHT, run_after=MIDNIGHT
    )


def test_settings_that_cannot_be_read_do_not_stop_the_scheduler(stored, monkeypatch, caplog) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE_", "misspelt")
    assert run_id(stored("iota"), DagRunType.SCHEDULED).startswith("scheduled__2022-09-29")
    assert "lake.warehouse_: unknown key" in caplog.text


def test_its_days_are_those_of_utc(stored) -> None:
    interval = stored("iota").infer_manual_data_interval(run_after=MIDNIGHT.add(hours=5))
    assert (interval.start, interval.end) == (DAY.start, DAY.end)
