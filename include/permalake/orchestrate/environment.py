"""The one place that says in which environment Airflow and Spark run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from permalake import jars, objects
from permalake.config import CONFIG_VARIABLE, config_file, load_settings
from permalake.orchestrate import class_archive
from permalake.paths import DAGS, HOME, PLUGINS, SPARK_JOBS

AIRFLOW_HOME = HOME / "airflow"
POOL = "permalake_builds"
GIB = 1 << 30


def bin_folder() -> Path:
    """Where this environment's ``spark-submit`` and ``airflow`` are."""
    return Path(sys.executable).parent


def airflow_environment(
    *, database: Path, config: str | os.PathLike[str] | None = None, logs: Path | None = None
) -> dict[str, str]:
    """The environment variables of an Airflow process of this project, on the sqlite metadata ``database``.

    Starts from the present environment, so that what the user exported (JAVA_HOME, PERMALAKE_…,
    AIRFLOW__…) holds; the project's own settings are defaults unless something would break without them.
    """
    AIRFLOW_HOME.mkdir(parents=True, exist_ok=True)
    own_file = AIRFLOW_HOME / "airflow.cfg"
    if not own_file.exists():
        # Without a file of ours every first process of a new home would write a default one, all at once.
        own_file.write_text(
            "# Airflow is configured by environment; see permalake.orchestrate.environment.\n"
        )
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


def spark_master() -> str:
    """``PERMALAKE_SPARK_MASTER`` (``spark://…``, ``yarn``, ``k8s://…``), or every core of this machine."""
    return os.environ.get("PERMALAKE_SPARK_MASTER", "local[*]")


def driver_memory() -> str:
    """``PERMALAKE_SPARK_DRIVER_MEMORY``, or a quarter of this machine's, from 1 to 8 GiB.

    On a local master the driver is the executor too; the rest is for its Python workers.
    """
    if configured := os.environ.get("PERMALAKE_SPARK_DRIVER_MEMORY"):
        return configured
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(8, max(1, total // 4 // GIB))}g"


def is_local() -> bool:
    """Whether the driver is the executor too."""
    return spark_master().startswith("local")


def spark_conf(coordinates: Sequence[str] = jars.COORDINATES) -> dict[str, str]:
    """Spark settings of a submit that must be known before the session starts."""
    remote = objects.is_object_store(load_settings().lake.warehouse)
    if remote:
        coordinates = (*coordinates, *jars.S3_COORDINATES)
    more = [coordinate for coordinate in coordinates if coordinate not in jars.COORDINATES]
    conf = {
        "spark.ui.enabled": os.environ.get("PERMALAKE_SPARK_UI", "false"),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.jars": jars.class_path(coordinates),
    }
    if remote:
        conf |= objects.hadoop()
    if is_local() and not remote:
        # On the class path of Java itself: nothing is copied, and the classes may come from an archive.
        conf |= {
            "spark.driver.extraClassPath": class_archive.class_path(),
            "spark.jars": jars.class_path(more),
        }
    if not is_local():
        conf |= {
            # Left out, one application takes every core of a standalone cluster, and the next one waits.
            "spark.cores.max": os.environ.get("PERMALAKE_SPARK_CORES", "4"),
            "spark.executor.memory": os.environ.get("PERMALAKE_SPARK_EXECUTOR_MEMORY", "2g"),
        }
        if os.environ.get("PERMALAKE_JARS_ON_NODES"):
            # Every executor of every submit would fetch them from the driver, 150 MB with S3's.
            conf["spark.jars"] = ",".join(f"local:{jar}" for jar in conf["spark.jars"].split(","))
    return {name: value for name, value in conf.items() if value}


def job_file(job: str) -> str:
    """Path of a Spark job of this project, by its name."""
    return str(SPARK_JOBS / f"{job}.py")
