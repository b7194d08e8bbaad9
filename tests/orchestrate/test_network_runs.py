"""Which runs are meant for every network, and what they start."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from permalake.iota.day import IOTA
from permalake.orchestrate import network_runs
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
    ("run_type", "run_id", "sibling", "shares"),
    [
        ("scheduled", "shimmer_2022-09-28__scheduled", "testnet_2022-09-28__scheduled", True),
        ("backfill", "backfill__2022-09-29T00", "testnet_2022-09-28__backfill__2022-09-29T00", False),
    ],
)
def test_the_other_networks_get_the_runs_day_and_parameters(
    settings, monkeypatch, run_type, run_id, sibling, shares
) -> None:
    asked = []
    monkeypatch.setattr(network_runs, "start_run", lambda *call: asked.append(call) or True)
    run = SimpleNamespace(run_type=run_type, run_id=run_id, conf={"force": True, "only": None})
    context = {"dag_run": run, "ti": SimpleNamespace(dag_id="iota_daily")}
    assert network_runs.start_others(settings, IOTA, context, "2022-09-28") == [sibling]
    ((dag, started, conf),) = asked
    assert (dag, started) == ("iota_daily", sibling)
    expected = {"force": True, "network": "testnet", "start": "2022-09-28"}
    assert conf == expected | ({network_runs.SCHEDULED: True} if shares else {})


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
