"""Runs of private metadata databases in the one that Airflow's server shows."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from permalake.local import airflow_metadata, run_history
from permalake.local.task_logs import TaskLogs

NOW = "2026-01-01 00:00:00.000000"
DAG = {
    **{"dag_id": "iota_daily", "is_paused": 1, "is_stale": 0, "bundle_name": "dags-folder"},
    **{"timetable_type": "t", "partition_mapper_info": "{}", "max_active_tasks": 4},
    **{"max_consecutive_failed_dag_runs": 0, "has_task_concurrency_limits": 0},
}


def insert(connection, table, **values):
    names, places = ", ".join(values), ", ".join("?" * len(values))
    connection.execute(f"insert into {table} ({names}) values ({places})", tuple(values.values()))


def private(folder, name, state, tasks, dag_hash="equal"):
    """A database as a run without a scheduler leaves it: ids begin at 1 in each."""
    database = airflow_metadata.copy_to(folder / f"{name}.db")
    version = f"{name:x>32}"
    with closing(sqlite3.connect(database)) as connection:
        insert(connection, "dag_bundle", name="dags-folder", active=1)
        insert(connection, "dag", **DAG)
        dated = {"created_at": NOW, "last_updated": NOW}
        insert(connection, "dag_version", id=version, version_number=1, dag_id="iota_daily", **dated)
        own = {"dag_id": "iota_daily", "dag_hash": dag_hash, "dag_version_id": version}
        insert(connection, "serialized_dag", id=version, **own, **dated)
        run = {"dag_id": "iota_daily", "run_id": f"manual__{name}"}
        times = {"run_after": NOW, "logical_date": f"2026-01-01 00:00:0{len(name)}"}
        insert(connection, "dag_run", id=1, state=state, run_type="manual", **run, **times)
        for number, (task, task_state) in enumerate(tasks.items()):
            started = {"start_date": NOW} if task_state else {}
            identity = {"id": f"{name}{number:x>30}", "task_id": task, "pool": "p", "pool_slots": 1}
            values = {"state": task_state, "try_number": 0, "dag_version_id": version, **run, **started}
            insert(connection, "task_instance", **identity, **values)
            said = {"task_id": task, "key": "return_value", "value": f'"{name}"', "timestamp": NOW}
            insert(connection, "xcom", dag_run_id=1, **said, **run)
        connection.commit()
    logs = folder / f"{name}-logs" / "dag_id=iota_daily" / f"run_id=manual__{name}"
    logs.mkdir(parents=True)
    (logs / "attempt=1.log").write_text(name)
    return database, folder / f"{name}-logs"


def shown(history, query):
    with closing(sqlite3.connect(history / "airflow.db")) as connection:
        return connection.execute(query).fetchall()


def test_runs_of_private_databases_stand_side_by_side(tmp_path):
    history = tmp_path / "history"
    for name in ("a", "bb"):
        made = private(tmp_path, name, "success", {"publish": "success", "serve": "skipped"})
        run_history.record(*made, history)
        run_history.record(*made, history)
    runs = shown(history, "select id, run_id, state from dag_run order by id")
    assert runs == [(1, "manual__a", "success"), (2, "manual__bb", "success")]
    joined = (
        "select r.run_id, t.task_id, t.state, t.try_number, x.value from dag_run r join task_instance t "
        "using (dag_id, run_id) join xcom x on x.dag_run_id = r.id and x.task_id = t.task_id order by 1, 2"
    )
    assert shown(history, joined) == [
        (f"manual__{name}", task, state, 1, f'"{name}"')
        for name in ("a", "bb")
        for task, state in (("publish", "success"), ("serve", "skipped"))
    ]
    # Both ran the same DAG: no version more, and none that rows name but is not there.
    assert shown(history, "select count(*) from dag_version") == [(1,)]
    assert shown(history, "pragma foreign_key_check") == []
    logs = sorted(file.read_text() for file in (history / "logs").rglob("*.log"))
    assert logs == ["a", "bb"]


def test_a_killed_run_leaves_nothing_that_a_scheduler_would_take_over(tmp_path):
    tasks = {"ingest_decode": "success", "analytics": "running", "audit": None}
    run_history.record(*private(tmp_path, "a", "running", tasks), tmp_path / "history")
    assert shown(tmp_path / "history", "select state from dag_run") == [("failed",)]
    states = shown(tmp_path / "history", "select task_id, state, try_number from task_instance order by 1")
    assert states == [("analytics", "failed", 1), ("audit", None, 0), ("ingest_decode", "success", 1)]


def test_a_database_of_another_airflow_is_left_alone(tmp_path):
    made = private(tmp_path, "a", "success", {"publish": "success"})
    history = tmp_path / "history"
    with closing(sqlite3.connect(airflow_metadata.copy_to(history / "airflow.db"))) as connection:
        connection.execute("update alembic_version set version_num = 'older'")
        connection.commit()
    with pytest.raises(sqlite3.Error, match="another version of Airflow"):
        run_history.record(*made, history)
    assert shown(history, "select count(*) from dag_run") == [(0,)]


def test_each_task_has_its_part_of_the_output(tmp_path):
    class Task:
        dag_id, run_id, task_id, try_number = "iota_daily", "manual__a", "publish", 0

    with (tmp_path / "run.log").open("w+b") as output:
        logs = TaskLogs(tmp_path / "logs", output.fileno())
        os.write(output.fileno(), b"before\n")
        logs.on_task_instance_running(None, Task)
        os.write(output.fileno(), b"own\n")
        logs.on_task_instance_success(None, Task)
        os.write(output.fileno(), b"after\n")
    (log,) = (tmp_path / "logs").rglob("*.log")
    assert log == (tmp_path / "logs/dag_id=iota_daily/run_id=manual__a/task_id=publish/attempt=1.log")
    assert log.read_text() == "own\n"
