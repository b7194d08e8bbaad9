"""The sensor before ``serve``: it waits, gives up with the reason, and goes on when the store is there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
)

from permalake.contracts.steps import WAIT
from permalake.local.services.daemon import free_port
from permalake.orchestrate.store_sensor import StoreSensor
from permalake.wormhole.day import WORMHOLE

TABLES = {"PROJECT": "p", "INSTANCE": "i", "TABLE": "events"}


@pytest.fixture
def sensor():
    return StoreSensor(domain=WORMHOLE, step=WORMHOLE.step(WAIT))


@pytest.fixture
def context(config, monkeypatch):
    """The context of a task that first asked when ``context(minutes)`` says."""
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))

    def started(minutes):
        first = datetime.now(UTC) - timedelta(minutes=minutes)
        return {
            "dag_run": SimpleNamespace(conf={}, run_type="manual", run_after=datetime.now(UTC)),
            "run_id": "manual__1",
            "params": {"start": "2024-07-04"},
            "ti": SimpleNamespace(get_first_reschedule_date=lambda context: first),
        }

    return started


@pytest.fixture
def bigtable(monkeypatch):
    """The address of an emulator, in the settings."""

    def configure(port):
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", f"127.0.0.1:{port}")
        for key, value in TABLES.items():
            monkeypatch.setenv(f"PERMALAKE_BIGTABLE__{key}", value)

    return configure


def test_without_a_store_there_is_nothing_to_wait_for(sensor, context) -> None:
    with pytest.raises(AirflowSkipException, match="no store is configured for wormhole"):
        sensor.execute(context(0))


def test_it_is_rescheduled_while_the_store_is_down_and_says_so(sensor, context, bigtable, caplog) -> None:
    bigtable(free_port())
    caplog.set_level("INFO")
    with pytest.raises(AirflowRescheduleException) as again:
        sensor.execute(context(59))
    assert timedelta(seconds=50) < again.value.reschedule_date - datetime.now(UTC) <= timedelta(seconds=60)
    assert any(line.startswith("waiting for Bigtable: Bigtable table events: ") for line in caplog.messages)


def test_it_gives_up_with_the_reason_on_one_line(sensor, context, bigtable) -> None:
    bigtable(free_port())
    with pytest.raises(AirflowSensorTimeout) as given_up:
        sensor.execute(context(61))
    told = str(given_up.value)
    assert told.startswith("Bigtable table events: ")
    assert told.endswith("; waited 60 minutes, and the next run tries again")
    assert "\n" not in told


def test_it_goes_on_when_the_store_answers_and_has_its_tables(
    sensor, context, bigtable, bigtable_server
) -> None:
    bigtable(bigtable_server.port)
    sensor.execute(context(10))


def test_what_no_waiting_mends_fails_at_once(sensor, context, bigtable, monkeypatch) -> None:
    bigtable(free_port())
    monkeypatch.delenv("PERMALAKE_BIGTABLE__INSTANCE")
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", "http://example.org")
    with pytest.raises(AirflowFailException, match=r"google_cloud_default is of type http"):
        sensor.execute(context(0))
