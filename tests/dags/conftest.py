"""Airflow as the project configures it, without a database."""

from __future__ import annotations

import os

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
