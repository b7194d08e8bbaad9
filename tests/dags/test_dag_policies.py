"""What every DAG of the project must have."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from permalake.orchestrate import plans
from permalake.orchestrate.spark_step import SparkStep
from permalake.paths import DAGS, SPARK_JOBS

DAG_IDS = ("iota_daily", "wormhole_daily")


@pytest.fixture(params=DAG_IDS)
def dag(dag_bag, request):
    return dag_bag.dags[request.param]


def test_every_file_is_imported_and_there_is_no_other_dag(dag_bag):
    assert dag_bag.import_errors == {}
    assert sorted(dag_bag.dags) == sorted(DAG_IDS)
    assert len(list(DAGS.glob("*.py"))) == len(DAG_IDS)


def test_files_are_short_and_parse_within_a_second(dag_bag):
    assert len(dag_bag.dagbag_stats) == len(DAG_IDS)
    for parsed in dag_bag.dagbag_stats:
        assert parsed.duration < timedelta(seconds=1), parsed.file
    for file in DAGS.glob("*.py"):
        assert len(file.read_text("utf-8").splitlines()) < 80, file


def test_owner_tags_and_documentation(dag):
    assert dag.owner == "permalake"
    assert "permalake" in dag.tags
    assert len(dag.doc_md) > 300
    assert dag.description and len(dag.description) < 120
    assert all(task.doc_md for task in dag.tasks)


def test_retries_back_off_and_every_task_has_a_timeout(dag):
    for task in dag.tasks:
        assert task.retries >= 1
        assert task.retry_exponential_backoff
        assert task.execution_timeout is not None
        assert task.on_failure_callback
    assert dag.dagrun_timeout is not None


def test_runs_are_daily_bounded_and_not_caught_up(dag):
    assert dag.timetable.can_be_scheduled
    assert dag.catchup is False
    assert dag.max_active_runs <= 4
    assert {task.pool for task in dag.tasks} == {"permalake_builds"}


def test_at_most_four_spark_submits_each_of_an_existing_job(dag):
    submits = [task for task in dag.tasks if isinstance(task, SparkStep)]
    assert 1 <= len(submits) <= 4
    for task in submits:
        assert (SPARK_JOBS / f"{task.job}.py").is_file(), task.job


def test_tasks_stand_in_the_order_of_the_plan(dag):
    kind = dag.dag_id.removesuffix("_daily")
    assert tuple(task.task_id for task in dag.topological_sort()) == plans.TASKS[kind]
    for before, after in zip(plans.TASKS[kind], plans.TASKS[kind][1:], strict=False):
        assert dag.task_dict[before].downstream_task_ids == {after}
    assert [task.task_id for task in dag.tasks if getattr(task, "first", False)] == [plans.TASKS[kind][0]]


def test_publish_tells_downstream_dags(dag):
    (asset,) = dag.task_dict["publish"].outlets
    assert asset.name == f"{dag.dag_id.removesuffix('_daily')}_published_day"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"start": "28.09.2022"}, "start"),
        ({"only": "bake"}, "only"),
        ({"force": "perhaps"}, "force"),
        ({"network": 7}, "network"),
    ],
)
def test_a_wrong_parameter_is_refused(dag, given, fault):
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError, match=fault):
        copy.deepcopy(dag.params).update(given)


def test_parameters_explain_themselves(dag):
    assert set(dag.params) == {"network", "start", "end", "only", "force"}
    for name in dag.params:
        assert dag.params.get_param(name).description
    dag.params.validate()
