"""Runs without a scheduler in the metadata database of ``make up``, with their logs.

Such a run works on a private database, so that runs at the same time never wait for each other's sqlite and
no scheduler takes over their tasks. Once it has ended, its rows and logs are copied to where Airflow's server
shows them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from permalake.local import airflow_metadata
from permalake.local.airflow_env import AIRFLOW_HOME

VARIABLE = "PERMALAKE_RUN_HISTORY"
"""Folder of database and logs; empty: runs are not recorded."""
_PATIENCE = 60.0
_ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
_JOBS = ("creating_job_id", "scheduled_by_job_id", "queued_by_job_id", "trigger_id")


def folder() -> Path | None:
    """Return the folder of the server's database and logs; None when runs are not recorded."""
    chosen = os.environ.get(VARIABLE, str(AIRFLOW_HOME))
    return Path(chosen) if chosen else None


def record(database: Path, logs: Path, history: Path) -> None:
    """Copy the runs in a private ``database`` and their ``logs`` to the server's.

    Raises:
        OSError: A log cannot be copied.
        sqlite3.Error: The server's database cannot be written, or is of another version.
    """
    if logs.is_dir():
        shutil.copytree(logs, history / "logs", dirs_exist_ok=True)
    shared = airflow_metadata.copy_to(history / "airflow.db")
    with closing(sqlite3.connect(shared, timeout=_PATIENCE, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("ATTACH ? AS private", (str(database),))
        connection.execute("BEGIN IMMEDIATE")
        try:
            _copy(connection)
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _copy(connection: sqlite3.Connection) -> None:
    versions = [
        connection.execute(f"SELECT version_num FROM {schema}.alembic_version").fetchone()[0]  # noqa: S608
        for schema in ("main", "private")
    ]
    if versions[0] != versions[1]:
        raise sqlite3.DatabaseError("the server's database is of another version of Airflow")
    runs = connection.execute(
        "SELECT * FROM private.dag_run "
        "WHERE (dag_id, run_id) NOT IN (SELECT dag_id, run_id FROM main.dag_run)"
    ).fetchall()
    for run in runs:
        _copy_run(connection, run, _version(connection, str(run["dag_id"])))


def _copy_run(connection: sqlite3.Connection, run: sqlite3.Row, version: str) -> None:
    number = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM main.dag_run").fetchone()[0]
    run_state = run["state"] if run["state"] in _ENDED else "failed"
    own = {
        "id": number,
        "state": run_state,
        "created_dag_version_id": version,
        "triggering_user_name": "permalake run",
    }
    _insert(connection, "dag_run", [run], **own)
    for task in _of_run(connection, "task_instance", run):
        # A run that was killed leaves tasks that no scheduler may take for its own.
        is_open = task["state"] not in _ENDED and task["start_date"] is not None
        state = "failed" if is_open else task["state"] if task["state"] in _ENDED else None
        tries = max(int(task["try_number"]), 1 if task["start_date"] is not None else 0)
        _insert(connection, "task_instance", [task], dag_version_id=version, state=state, try_number=tries)
    _insert(connection, "xcom", _of_run(connection, "xcom", run), dag_run_id=number)
    fields = "rendered_task_instance_fields"
    _insert(connection, fields, _of_run(connection, fields, run))


def _of_run(connection: sqlite3.Connection, table: str, run: sqlite3.Row) -> list[sqlite3.Row]:
    query = f"SELECT * FROM private.{table} WHERE dag_id = ? AND run_id = ?"  # noqa: S608
    return connection.execute(query, (run["dag_id"], run["run_id"])).fetchall()


def _version(connection: sqlite3.Connection, dag: str) -> str:
    """Return the id of the DAG's version in the server's database: an equal one, else the latest.

    A server that has never read the DAG gets the private one.
    """
    latest = """
        SELECT v.id FROM main.dag_version v LEFT JOIN main.serialized_dag s ON s.dag_version_id = v.id
        WHERE v.dag_id = :dag ORDER BY s.dag_hash IN (
            SELECT dag_hash FROM private.serialized_dag WHERE dag_id = :dag
        ) DESC, v.version_number DESC LIMIT 1
    """
    known = connection.execute(latest, {"dag": dag}).fetchone()
    if known is None:
        bundles = "SELECT * FROM private.dag_bundle"
        _insert(connection, "dag_bundle", connection.execute(bundles).fetchall())
        for table in ("dag", "dag_version", "serialized_dag", "dag_code"):
            query = f"SELECT * FROM private.{table} WHERE dag_id = ?"  # noqa: S608
            _insert(connection, table, connection.execute(query, (dag,)).fetchall())
        known = connection.execute(latest, {"dag": dag}).fetchone()
    return str(known[0])


def _insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[sqlite3.Row], **changed: object
) -> None:
    """Insert rows with some values changed; rows that are there already stay."""
    for row in rows:
        jobs = {name: None for name in _JOBS if name in row.keys()}  # noqa: SIM118
        values = {**dict(row), **jobs, **changed}
        names, places = ", ".join(f'"{name}"' for name in values), ", ".join("?" * len(values))
        query = f"INSERT OR IGNORE INTO main.{table} ({names}) VALUES ({places})"  # noqa: S608
        connection.execute(query, tuple(values.values()))
