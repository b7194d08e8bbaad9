"""How a Spark job of this project is submitted: master, memory, jars and settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from permalake.config import load_settings
from permalake.net import object_storage
from permalake.paths import SPARK_JOBS
from permalake.spark import class_archive, jars

GIB = 1 << 30
WORKER_DAEMON = "permalake.spark.worker_daemon"
"""Module that starts Python workers, where they have this environment."""
_CLASS_PATH = "SPARK_DIST_CLASSPATH"


def bin_folder() -> Path:
    """Where this environment's ``spark-submit`` and ``airflow`` are."""
    return Path(sys.executable).parent


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
    warehouse = load_settings().lake.warehouse
    access = _access(warehouse)
    coordinates = (*coordinates, *access)
    besides = [one for one in coordinates if one not in (*jars.COORDINATES, *access)]
    conf = {
        "spark.ui.enabled": os.environ.get("PERMALAKE_SPARK_UI", "false"),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.jars": jars.class_path(coordinates),
    }
    if access:
        conf |= object_storage.hadoop(warehouse)
    if is_local() or not access:
        # On the class path of the driver's Java itself, where its classes may come from an archive.
        conf["spark.driver.extraClassPath"] = class_archive.class_path()
    if is_local():
        # Only what few jobs need is left for spark.jars, whose files Spark copies.
        conf |= {"spark.python.daemon.module": WORKER_DAEMON, "spark.jars": jars.class_path(besides)}
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


def spark_environment() -> dict[str, str]:
    """Return variables of a submit: on one machine, jars that reach object storage join the class path.

    They come after Spark's own jars: before them, the class path would differ from that of the archived
    classes. In ``spark.jars``, Iceberg, which is on the class path, would not find them.
    """
    access = _access(load_settings().lake.warehouse)
    if not (is_local() and access):
        return {}
    given = os.environ.get(_CLASS_PATH)
    own = jars.class_path(access).split(",")
    return {_CLASS_PATH: os.pathsep.join([*([given] if given else []), *own])}


def _access(warehouse: str) -> tuple[str, ...]:
    """Return the coordinates of what reaches a warehouse in object storage; none for one on a disk."""
    if not object_storage.is_object_store(warehouse):
        return ()
    return jars.GS_COORDINATES if object_storage.is_gs(warehouse) else jars.S3_COORDINATES


def job_file(job: str) -> str:
    """Path of a Spark job of this project, by its name."""
    return str(SPARK_JOBS / f"{job}.py")
