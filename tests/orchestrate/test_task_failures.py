"""How a task fails: whether Airflow tries it again."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from datetime import UTC, datetime
from types import SimpleNamespace

import psutil
import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from permalake.config import load_settings
from permalake.contracts.steps import PUBLISH
from permalake.domains import open_reader
from permalake.iota.day import IOTA
from permalake.orchestrate.maintenance_dag import compact_step, tidy_step
from permalake.orchestrate.step_task import InTaskStep
from permalake.orchestrate.submit_task import SparkStep
from permalake.orchestrate.task_reports import REPORT
from support.lakes import DAY1, NETWORK, OpenLake, pass_audit, stage_day

RUN = "manual__2022-09-28"
REPORTS: dict[str, dict] = {}
"""What the last task pushed as XComs."""


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


def failure(task, **params) -> AirflowException:
    """The exception that Airflow gets from a task that fails."""
    with pytest.raises(AirflowException) as failed:
        task.execute(context(**params))
    return failed.value


def context(**params):
    return {
        "dag_run": SimpleNamespace(conf={}, run_type="manual", run_after=datetime.now(UTC)),
        "run_id": RUN,
        "params": {"network": NETWORK, "start": str(DAY1), **params},
        "ti": SimpleNamespace(id="try-1", xcom_push=REPORTS.__setitem__),
        "outlet_events": defaultdict(SimpleNamespace),
    }


def publish():
    return InTaskStep(domain=IOTA, step=IOTA.step(PUBLISH))


def test_what_another_try_may_mend_is_tried_again(lake, monkeypatch) -> None:
    with monkeypatch.context() as busy:
        busy.setattr("permalake.lake.commit.TRIES", 0)  # as where others publish before each of its tries
        error = failure(publish())
    assert not isinstance(error, AirflowFailException)
    assert str(error) == f"{NETWORK} {DAY1}: others kept on publishing; publish it again"
    assert REPORTS[REPORT] == {
        "attempt": "try-1",
        "subject": f"{NETWORK} {DAY1}",
        "outcome": None,
        "reason": str(error),
    }
    assert publish().execute(context())["days"] == [str(DAY1)]
    assert REPORTS[REPORT]["reason"] is None
    assert REPORTS[REPORT]["outcome"].startswith("published, 5 blocks, ")


@pytest.mark.parametrize(
    "task", [publish, lambda: SparkStep(domain=IOTA, step=IOTA.steps[0])], ids=["in task", "submit"]
)
def test_a_wrong_setting_is_final_whatever_the_task(lake, monkeypatch, task) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE_", "misspelt")
    error = failure(task())
    assert isinstance(error, AirflowFailException)
    assert "\n" not in str(error)
    assert (REPORTS[REPORT]["subject"], REPORTS[REPORT]["reason"]) == (None, str(error))


def test_a_failed_task_leaves_no_day_held(lake, monkeypatch) -> None:
    with monkeypatch.context() as busy:
        busy.setattr("permalake.lake.commit.TRIES", 0)
        failure(publish())
    lake.begin(NETWORK, DAY1, DAY1, "another run")


@pytest.mark.parametrize("task", [compact_step, tidy_step])
def test_maintenance_does_not_try_a_wrong_setting_again(lake, monkeypatch, task) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE_", "misspelt")
    with pytest.raises(AirflowFailException, match=r"^lake.warehouse_: unknown key"):
        task(doc="").execute(context(network=None))


@pytest.fixture
def spark_submit(monkeypatch, tmp_path):
    """A program in the place of spark-submit, which runs for a minute; the file that says it was started."""
    program, started = tmp_path / "bin" / "spark-submit", tmp_path / "started"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    return started


STOPPED = "the Spark submit ended with exit code -9: Airflow stopped the task, as where its run is marked"


def test_a_submit_that_airflow_stopped_is_told_as_such(lake, spark_submit) -> None:
    task = SparkStep(domain=IOTA, step=IOTA.steps[0])

    def stop() -> None:
        while "sleep" not in [child.name() for child in psutil.Process().children()]:
            time.sleep(0.1)
        task.on_kill()

    threading.Thread(target=stop).start()
    error = failure(task, force=True)
    assert str(error).startswith(STOPPED)
    (day,) = open_reader(load_settings()).status(NETWORK)
    assert str(day.error).startswith(STOPPED)


@pytest.mark.parametrize("moment", ["before the task works", "while it looks for the connection"])
def test_a_task_that_airflow_stopped_before_its_submit_does_not_submit(
    lake, spark_submit, monkeypatch, moment
) -> None:
    task = SparkStep(domain=IOTA, step=IOTA.steps[0])
    if moment.startswith("before"):
        task.on_kill()
    else:
        resolve = SparkSubmitHook._resolve_connection

        def stop_and_resolve(hook):
            task.on_kill()
            return resolve(hook)

        monkeypatch.setattr(SparkSubmitHook, "_resolve_connection", stop_and_resolve)
    error = failure(task, force=True)
    assert str(error).startswith(STOPPED)
    assert not spark_submit.exists()
