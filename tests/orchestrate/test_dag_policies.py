"""What every DAG of the project must have."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from airflow.sdk import BaseSensorOperator

from permalake.contracts.steps import Step
from permalake.domains import named
from permalake.iota.day import IOTA
from permalake.local.describe import load_dags
from permalake.orchestrate.alerts import on_timeout
from permalake.orchestrate.dag import daily_dag
from permalake.orchestrate.deadline import PublishedBy
from permalake.orchestrate.step_task import InTaskStep
from permalake.orchestrate.submit_task import SparkStep, SubmitOperator
from permalake.paths import DAGS, PLUGINS, SPARK_JOBS

DAILY = ("iota_daily", "wormhole_daily")
LIVE = ("iota_live", "wormhole_live")
DAG_IDS = (*DAILY, *LIVE, "lake_maintenance")


@pytest.fixture(params=DAG_IDS)
def any_dag(dag_bag, request):
    return dag_bag.dags[request.param]


@pytest.fixture(params=DAILY)
def dag(dag_bag, request):
    return dag_bag.dags[request.param]


def test_every_file_is_imported_and_there_is_no_other_dag(dag_bag) -> None:
    assert dag_bag.import_errors == {}
    assert sorted(dag_bag.dags) == sorted(DAG_IDS)
    assert len(list(DAGS.glob("*.py"))) == len(DAG_IDS)


def test_files_are_short_and_parse_within_some_seconds(dag_bag) -> None:
    assert len(dag_bag.dagbag_stats) == len(DAG_IDS)
    for parsed in dag_bag.dagbag_stats:
        assert parsed.duration < timedelta(seconds=10), parsed.file
    for file in DAGS.glob("*.py"):
        assert len(file.read_text("utf-8").splitlines()) < 80, file


def test_parsing_reads_no_configuration_and_asks_nobody(dag_bag, monkeypatch) -> None:
    def refuse(*_):
        raise AssertionError("a DAG file was connecting while it was parsed")

    monkeypatch.setenv("PERMALAKE_CONFIG", "/nowhere/permalake.toml")
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("sqlite3.connect", refuse)
    assert len(load_dags()) == len(DAG_IDS)


def test_every_daily_dag_has_a_deadline_that_airflow_can_read_back(dag_bag, dag, monkeypatch) -> None:
    from airflow import plugins_manager
    from airflow.serialization.decoders import decode_deadline_alert
    from airflow.serialization.encoders import encode_deadline_alert

    # This process met Airflow before it was told where the plugins are.
    monkeypatch.setattr("airflow.settings.PLUGINS_FOLDER", str(PLUGINS))
    for kept in (plugins_manager._get_plugins, plugins_manager.get_deadline_references_plugins):
        kept.cache_clear()
    assert plugins_manager.get_import_errors() == {}
    (alert,) = dag.deadline
    assert "permalake.orchestrate.deadline.PublishedBy" in plugins_manager.get_deadline_references_plugins()
    read = decode_deadline_alert(encode_deadline_alert(alert))
    assert isinstance(read.reference.inner_ref, PublishedBy)
    assert read.callback.path == "permalake.orchestrate.deadline.on_missed"


def test_the_texts_of_a_daily_dag_name_its_tasks(dag) -> None:
    numbers = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    assert f"{numbers[len(dag.tasks)]} tasks" in dag.doc_md
    assert [name for name in dag.task_dict if f"**{name}**" not in dag.doc_md] == []


def test_assets_lead_from_raw_input_to_stores(dag) -> None:
    kind = dag.dag_id.removesuffix("_daily")
    first, serve = dag.task_dict[named(kind).steps[0].name], dag.task_dict["serve"]
    assert [asset.uri for asset in first.inlets] == [f"permalake://raw/{kind}"]
    assert [asset.uri for asset in serve.inlets] == [f"permalake://published/{kind}"]
    assert [asset.uri for asset in serve.outlets] == [f"permalake://served/{kind}"]


def test_a_step_without_a_job_runs_in_its_task(dag_bag) -> None:
    publish = IOTA.step("publish")
    census = Step("census", phases=("census",), run="somewhere:run", doc="Counts.")
    at = IOTA.steps.index(publish)
    steps = (*IOTA.steps[:at], census, *IOTA.steps[at:])
    tasks = daily_dag(replace(IOTA, steps=steps), doc="A day with a census.").task_dict
    assert isinstance(tasks["census"], InTaskStep)
    assert tasks["census"].outlets == []
    assert tasks["census"].downstream_task_ids == {"publish"}


def test_owner_tags_and_documentation(any_dag) -> None:
    dag = any_dag
    assert dag.owner == "permalake"
    assert "permalake" in dag.tags
    assert len(dag.doc_md) > 300
    assert dag.description
    assert len(dag.description) < 120
    assert all(task.doc_md for task in dag.tasks)


def test_retries_back_off_and_every_task_has_a_timeout(any_dag) -> None:
    dag = any_dag
    for task in dag.tasks:
        assert task.retries >= 1
        assert task.retry_exponential_backoff
        assert task.execution_timeout is not None
        assert task.on_failure_callback
    assert dag.dagrun_timeout is not None
    assert dag.on_failure_callback is on_timeout


def test_runs_are_daily_bounded_and_not_caught_up(dag) -> None:
    assert dag.timetable.can_be_scheduled
    assert dag.catchup is False
    assert dag.max_active_runs <= 4
    assert {task.pool for task in dag.tasks} == {"permalake_builds"}


def test_maintenance_runs_alone_and_cleans_whether_or_not_something_was_compacted(dag_bag) -> None:
    dag = dag_bag.dags["lake_maintenance"]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert [task.task_id for task in dag.topological_sort()] == ["compact", "tidy"]
    assert dag.task_dict["tidy"].trigger_rule == "none_failed"
    assert {task.pool for task in dag.tasks} == {"permalake_builds"}


@pytest.mark.parametrize("live", LIVE)
def test_a_network_is_followed_by_one_run_at_a_time_once_somebody_wants_it(dag_bag, live) -> None:
    dag = dag_bag.dags[live]
    assert (dag.max_active_runs, dag.catchup, dag.is_paused_upon_creation) == (1, False, True)
    assert type(dag.timetable).__name__ == "ContinuousTimetable"
    # A run that cannot start would be followed by the next one at once, without end.
    assert dag.max_consecutive_failed_dag_runs == 3
    assert "After three failed runs in a row" in dag.doc_md
    (task,) = dag.tasks
    assert isinstance(task, SubmitOperator)
    # The slots are for builds: a run that stays would keep one for ever.
    assert task.pool != "permalake_builds"
    assert task.execution_timeout < dag.dagrun_timeout
    assert (SPARK_JOBS / "live.py").is_file()


def test_at_most_four_spark_submits_each_of_an_existing_job(dag) -> None:
    submits = [task for task in dag.tasks if isinstance(task, SparkStep)]
    assert 1 <= len([task for task in submits if not task.step.light]) <= 4
    for task in submits:
        assert (SPARK_JOBS / f"{task.step.job}.py").is_file(), task.step.job


def test_tasks_are_the_steps_of_the_domain_in_order(dag) -> None:
    names = tuple(step.name for step in named(dag.dag_id.removesuffix("_daily")).steps)
    assert tuple(task.task_id for task in dag.topological_sort()) == names
    for before, after in pairwise(names):
        assert dag.task_dict[before].downstream_task_ids == {after}


def test_publish_adds_an_event_per_day_by_an_alias(dag) -> None:
    (alias,) = dag.task_dict["publish"].outlets
    assert alias.name == f"{dag.dag_id.removesuffix('_daily')}_published_days"


def test_a_store_that_is_down_delays_its_own_step_only(dag) -> None:
    serve, sensor = dag.task_dict["serve"], dag.task_dict["wait_for_store"]
    assert serve.upstream_task_ids == {"wait_for_store"}
    # It waits without a worker, and both catch up when there was nothing to build.
    assert isinstance(sensor, BaseSensorOperator)
    assert sensor.reschedule
    assert timedelta(seconds=sensor.timeout) >= timedelta(minutes=30)
    assert (sensor.trigger_rule, serve.trigger_rule) == ("none_failed", "none_failed")


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"start": "28.09.2022"}, "start"),
        ({"only": "bake"}, "only"),
        ({"force": "perhaps"}, "force"),
        ({"network": 7}, "network"),
    ],
)
def test_a_wrong_parameter_is_refused(dag, given, fault) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError, match=fault):
        copy.deepcopy(dag.params).update(given)


def test_parameters_explain_themselves(dag) -> None:
    assert list(dag.params) == ["network", "start", "end", "only", "force", "stored"]
    # The form unfolds only what stands in no section.
    unfolded = [name for name in dag.params if "section" not in dag.params.get_param(name).schema]
    assert unfolded == ["network", "start", "end"]
    for name in dag.params:
        assert dag.params.get_param(name).description
    dag.params.validate()
