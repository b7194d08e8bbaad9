"""Submits of this project's Spark jobs: master, memory, jars and settings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from permalake.config import load_settings
from permalake.net import object_storage
from permalake.paths import SPARK_JOBS
from permalake.spark import class_archive, jars

GIB = 1 << 30
WORKER_DAEMON = "permalake.spark.worker_daemon"
"""Module that starts Python workers, where they have this environment."""
_CLASS_PATH = "SPARK_DIST_CLASSPATH"
_LOOK_SECONDS = 0.5
_GRACE_SECONDS = 15
_LAST_BYTES = 64 << 10
_UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


@dataclass(frozen=True)
class Submission:
    """A Spark job of this project, by its name, with what its submit needs.

    ``title`` is the application's name in Spark, ``arguments`` are the job's, ``conf`` are Spark's settings.
    """

    job: str
    title: str
    arguments: Sequence[str]
    conf: Mapping[str, str]

    def command(self) -> list[str]:
        """Return the command line of the submit."""
        settings = [f"--conf={name}={value}" for name, value in self.conf.items()]
        command = [str(bin_folder() / "spark-submit"), "--master", spark_master(), "--name", self.title]
        return [*command, *settings, job_file(self.job), *self.arguments]


@dataclass(frozen=True)
class SubmitEnd:
    """The end of a submit: its exit code, and the last lines of its output."""

    code: int
    output: str = ""


def run(submission: Submission, log: Path, watch: Callable[[], None] = lambda: None) -> SubmitEnd:
    """Submit from this process, wait, and return how it ended.

    The output is appended to ``log``; ``watch`` is called again and again meanwhile. The job ends with this
    call, whatever ends it: it has a process group of its own, which no key at the terminal reaches.
    """
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment = {**os.environ, **python, **spark_environment()}
    # Compiling pyspark anew costs every process three seconds.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    log.parent.mkdir(parents=True, exist_ok=True)
    code = None
    with log.open("a+b") as output:
        begin = output.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            submission.command(),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while code is None:
                try:
                    code = process.wait(_LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    watch()
        finally:
            if code != 0:
                end_group(process)
        end = output.seek(0, os.SEEK_END)
        output.seek(max(begin, end - _LAST_BYTES))
        return SubmitEnd(code, output.read().decode("utf-8", errors="replace"))


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a process that leads a group: itself and all that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            return
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def bin_folder() -> Path:
    """Return the folder of this environment's ``spark-submit`` and ``airflow``."""
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


def mebibytes(memory: str) -> int:
    """Return the MiB of a size as Java spells it: ``512m``, ``8g``."""
    text = memory.strip().lower().removesuffix("b")
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
    return int(float(number) * _UNITS[unit]) if unit else int(number) // (1 << 20)


def is_local() -> bool:
    """Whether the driver is the executor too."""
    return spark_master().startswith("local")


def spark_conf(coordinates: Sequence[str] = jars.COORDINATES) -> dict[str, str]:
    """Spark settings of a submit that must be known before the session starts."""
    warehouse = load_settings().lake.warehouse
    access = _access(warehouse)
    coordinates = (*coordinates, *access)
    besides = [coordinate for coordinate in coordinates if coordinate not in (*jars.COORDINATES, *access)]
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
    jar_paths = jars.class_path(access).split(",")
    return {_CLASS_PATH: os.pathsep.join([*([given] if given else []), *jar_paths])}


def _access(warehouse: str) -> tuple[str, ...]:
    """Return the coordinates of what reaches a warehouse in object storage; none for one on a disk."""
    if not object_storage.is_object_store(warehouse):
        return ()
    return jars.GS_COORDINATES if object_storage.is_gs(warehouse) else jars.S3_COORDINATES


def job_file(job: str) -> str:
    """Path of a Spark job of this project, by its name."""
    return str(SPARK_JOBS / f"{job}.py")
