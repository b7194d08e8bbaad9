"""Airflow as the project configures it, without a database, and a file like its metadata database."""

from __future__ import annotations

import os
import sqlite3

import pytest

from permalake.local.airflow_env import airflow_environment
from permalake.paths import DAGS


@pytest.fixture(scope="session")
def dag_bag(tmp_path_factory):
    """Every DAG of the project, as Airflow's DAG processor finds them."""
    folder = tmp_path_factory.mktemp("airflow")
    os.environ.update(airflow_environment(database=folder / "none.db", logs=folder / "logs"))
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(str(DAGS))


@pytest.fixture
def metadata_file(tmp_path):
    """A sqlite file as Airflow keeps its metadata in one, with a table of runs."""
    path = tmp_path / "airflow.db"
    with sqlite3.connect(path) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE run (id)")
    return path
