"""Airflow's metadata database of this machine: made, and migrated once for each version of Airflow."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from permalake.errors import PermalakeError
from permalake.local.airflow_env import AIRFLOW_HOME, airflow_environment
from permalake.pipeline.domain import POOL

_MIGRATE = """
import sys
from airflow.models.pool import Pool
from airflow.utils.db import initdb
initdb()
if Pool.get_pool(sys.argv[1]) is None:
    description = "Spark submits at the same time"
    Pool.create_or_update_pool(sys.argv[1], int(sys.argv[2]), description, include_deferred=False)
"""


def database(*, is_in_use: bool = False) -> Path:
    """Return the database of ``make up`` and ``make demo``, which this version of Airflow can read.

    One of an earlier version is migrated; that takes ten seconds, as making one does.

    Raises:
        PermalakeError: if it is to be migrated and ``is_in_use``, or cannot be made.
    """
    AIRFLOW_HOME.mkdir(parents=True, exist_ok=True)
    file = AIRFLOW_HOME / "airflow.db"
    migrated = AIRFLOW_HOME / f"migrated-{version('apache-airflow-core')}"
    with (AIRFLOW_HOME / "airflow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (file.exists() and migrated.exists()):
            if is_in_use:
                raise PermalakeError("another version of Airflow is running; stop it first: make down")
            _migrate(file)
            migrated.touch()
    return file


def _migrate(file: Path) -> None:
    with tempfile.TemporaryDirectory(dir=AIRFLOW_HOME) as scratch:
        copy = Path(scratch) / file.name
        if file.exists():
            with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
        slots = os.environ.get("PERMALAKE_BUILD_SLOTS", "2")
        done = subprocess.run(
            [sys.executable, "-c", _MIGRATE, POOL, slots],
            env=airflow_environment(database=copy, logs=Path(scratch) / "logs"),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise PermalakeError(f"Airflow's database could not be made: {reason}")
        copy.replace(file)
    for suffix in ("-wal", "-shm"):  # Of the former file, whose backup has what they held.
        Path(f"{file}{suffix}").unlink(missing_ok=True)
