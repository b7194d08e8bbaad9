"""How a task fails: whether Airflow tries it again, and the exit code that a command passes on."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from permalake.config import load_settings
from permalake.iota.day import IOTA
from permalake.orchestrate.in_task import InTaskStep
from permalake.orchestrate.submit_task import spark_task
from permalake.pipeline.domain import PUBLISH
from permalake.pipeline.progress import VARIABLE
from support.lakes import DAY1, NETWORK, OpenLake, pass_audit, stage_day

RUN = "manual__2022-09-28"


@pytest.fixture
def lake(config, monkeypatch):
    """A lake in which a day of the run is audited and waits for its publication."""
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    lake = OpenLake(load_settings())
    attempt = lake.begin(NETWORK, DAY1, DAY1, RUN)
    stage_day(load_settings(), attempt, DAY1, 1, 5)
    pass_audit(attempt)
    lake.leave()
    return lake


@pytest.fixture
def failure(monkeypatch):
    """Execute a task that fails; the exception that Airflow gets, and the event for who watches the run."""
    reader, writer = os.pipe()
    monkeypatch.setenv(VARIABLE, str(writer))

    def execute(task, **params):
        with pytest.raises(AirflowException) as failed:
            task.execute(context(**params))
        events = [json.loads(line) for line in os.read(reader, 65_536).splitlines()]
        return failed.value, events[-1]

    yield execute
    os.close(reader)
    os.close(writer)


def context(**params):
    return {
        "dag_run": SimpleNamespace(conf={}, run_type="manual"),
        "run_id": RUN,
        "params": {"network": NETWORK, "start": str(DAY1), **params},
        "ti": SimpleNamespace(),
        "outlet_events": defaultdict(SimpleNamespace),
    }


def publish():
    return InTaskStep(domain=IOTA, step=IOTA.step(PUBLISH))


def test_what_another_try_may_mend_is_tried_again(lake, failure, monkeypatch):
    with monkeypatch.context() as busy:
        busy.setattr("permalake.lake.publish._TRIES", 0)  # as where others publish before each of its tries
        error, event = failure(publish())
    assert not isinstance(error, AirflowFailException)
    assert str(error) == f"{NETWORK} {DAY1}: others kept on publishing; publish it again"
    assert (event["event"], event["exit_code"], event["reason"]) == ("failed", 1, str(error))
    assert publish().execute(context())["days"] == [str(DAY1)]


@pytest.mark.parametrize(
    "task", [publish, lambda: spark_task(IOTA, IOTA.steps[0])], ids=["in task", "submit"]
)
def test_a_wrong_setting_is_final_whatever_the_task(lake, failure, monkeypatch, task):
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE_", "misspelt")
    error, event = failure(task())
    assert isinstance(error, AirflowFailException)
    assert "\n" not in str(error)
    assert (event["event"], event["exit_code"], event["reason"]) == ("failed", 2, str(error))


def test_a_failed_task_leaves_no_day_held(lake, failure, monkeypatch):
    with monkeypatch.context() as busy:
        busy.setattr("permalake.lake.publish._TRIES", 0)
        failure(publish())
    lake.begin(NETWORK, DAY1, DAY1, "another run")
