"""Which runs are meant for every network, and what they start."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from permalake.iota.day import IOTA
from permalake.orchestrate import network_runs
from permalake.orchestrate.submit_task import SparkStep
from permalake.wormhole.day import WORMHOLE


@pytest.mark.parametrize(
    ("domain", "network", "run_type", "expected"),
    [
        (IOTA, None, "scheduled", True),
        (IOTA, None, "backfill", True),
        (IOTA, "shimmer", "backfill", False),
        (IOTA, None, "manual", False),
        (WORMHOLE, None, "scheduled", False),
    ],
)
def test_runs_with_an_interval_and_no_network_are_for_all(domain, network, run_type, expected) -> None:
    assert network_runs.names_no_network(domain, {"network": network}, run_type) is expected


@pytest.mark.parametrize(
    ("run_type", "run_id", "sibling", "key"),
    [
        (
            "scheduled",
            "shimmer_2022-09-28__scheduled",
            "testnet_2022-09-28__scheduled",
            "permalake_scheduled",
        ),
        (
            "backfill",
            "backfill__2022-09-29T00",
            "testnet_2022-09-28__backfill__2022-09-29T00",
            "permalake_backfill",
        ),
    ],
)
def test_the_other_networks_get_the_runs_day_and_parameters(
    settings, monkeypatch, run_type, run_id, sibling, key
) -> None:
    asked = []
    monkeypatch.setattr(network_runs, "start_run", lambda *call: asked.append(call) or True)
    run = SimpleNamespace(run_type=run_type, run_id=run_id, conf={"force": True, "only": None})
    context = {"dag_run": run, "ti": SimpleNamespace(dag_id="iota_daily")}
    assert network_runs.start_others(settings, IOTA, context, "2022-09-28") == [sibling]
    ((dag, started, conf),) = asked
    assert (dag, started) == ("iota_daily", sibling)
    assert conf == {"force": True, "network": "testnet", "start": "2022-09-28", key: True}


def test_a_backfill_that_starts_at_a_later_step_is_for_every_network_too(config, monkeypatch) -> None:
    asked = []
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setattr(network_runs, "start_run", lambda *call: asked.append(call) or True)
    run = SimpleNamespace(run_type="backfill", run_id="backfill__2022-09-29T00", conf={"only": "serve"})
    task = SimpleNamespace(id="try-1", dag_id="iota_daily", xcom_push=dict, xcom_pull=lambda **_: None)
    context = {
        "dag_run": run,
        "run_id": run.run_id,
        "params": {"network": None, "only": "serve"},
        "data_interval_start": datetime(2022, 9, 28, tzinfo=UTC),
        "ti": task,
    }
    assert SparkStep(domain=IOTA, step=IOTA.steps[0]).execute(context) is None
    ((_, _, conf),) = asked
    assert conf == {"network": "testnet", "start": "2022-09-28", "only": "serve", network_runs.BACKFILL: True}
    SparkStep(domain=IOTA, step=IOTA.step("audit")).execute(context)
    assert len(asked) == 1, "the first task alone starts them"


def test_a_network_that_is_not_scheduled_has_no_run_of_its_own(settings, monkeypatch) -> None:
    monkeypatch.setattr(network_runs, "start_run", lambda *_: pytest.fail("a run was started"))
    by_name = settings.networks["testnet"].model_copy(update={"scheduled": False})
    given = settings.model_copy(
        update={"networks": {"testnet": by_name, "shimmer": settings.networks["shimmer"]}}
    )
    run = SimpleNamespace(run_type="scheduled", run_id="shimmer_2022-09-28__scheduled", conf={})
    context = {"dag_run": run, "ti": SimpleNamespace(dag_id="iota_daily")}
    assert network_runs.first_network(given, IOTA) == "shimmer"
    assert network_runs.start_others(given, IOTA, context, "2022-09-28") == []


def test_the_type_of_a_run_is_told_as_tasks_and_the_scheduler_see_it() -> None:
    from airflow.sdk.api.datamodels._generated import DagRunType

    assert network_runs.type_of(SimpleNamespace(run_type=DagRunType.SCHEDULED)) == "scheduled"
    assert network_runs.type_of(SimpleNamespace(run_type="backfill")) == "backfill"
