"""The environment of every Airflow process of this project."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from permalake.config import CONFIG_VARIABLE, config_file
from permalake.paths import DAGS, HOME, PLUGINS
from permalake.spark.submit import bin_folder, spark_master

AIRFLOW_HOME = HOME / "airflow"


def airflow_environment(
    *, database: Path, config: str | os.PathLike[str] | None = None, logs: Path | None = None
) -> dict[str, str]:
    """Return the environment of an Airflow process of this project, on the SQLite metadata ``database``.

    It starts from the present environment, so that what the user exported (JAVA_HOME, PERMALAKE_…,
    AIRFLOW__…) holds; the project's own settings are defaults unless something would break without them.
    """
    AIRFLOW_HOME.mkdir(parents=True, exist_ok=True)
    own_file = AIRFLOW_HOME / "airflow.cfg"
    if not own_file.exists():
        # Without a file of ours every first process of a new home would write a default one, all at once.
        own_file.write_text("# Airflow is configured by environment; see permalake.local.airflow_env.\n")
    defaults = {
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "pyiceberg=WARNING",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        # What a killed scheduler had started begins again after a minute, not five.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "60",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": spark_master()}),
    }
    fixed = {
        "AIRFLOW_HOME": str(AIRFLOW_HOME),
        "AIRFLOW_CONFIG": str(own_file),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PLUGINS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{database}",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": "permalake.orchestrate.metadata_locks.CONNECT_ARGS",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(logs or AIRFLOW_HOME / "logs"),
        "PATH": f"{bin_folder()}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    environment = {**defaults, **os.environ, **fixed}
    # Compiling Airflow and pyspark anew costs every process of a run three to five seconds.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if file := config_file(config):
        environment[CONFIG_VARIABLE] = str(file)
    return environment
