"""Airflow's metadata database: migrated once into a template, copied for every run without a scheduler.

Migrating costs ten seconds, copying a millisecond, and runs on copies never wait for each other's sqlite.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
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
Pool.create_or_update_pool(
    sys.argv[1], slots=int(sys.argv[2]), description="Spark submits at the same time", include_deferred=False
)
"""


def template() -> Path:
    """Return the migrated, empty database of this Airflow version; create it if missing."""
    file = AIRFLOW_HOME / f"template-{version('apache-airflow-core')}.db"
    if not file.exists():
        with tempfile.TemporaryDirectory(dir=_home()) as scratch:
            made = Path(scratch) / file.name
            slots = os.environ.get("PERMALAKE_BUILD_SLOTS", "2")
            done = subprocess.run(
                [sys.executable, "-c", _MIGRATE, POOL, slots],
                env=airflow_environment(database=made, logs=Path(scratch) / "logs"),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
                raise PermalakeError(f"Airflow's database could not be made: {reason}")
            made.replace(file)
    return file


def copy_to(database: Path) -> Path:
    """Create a private database at ``database``; an existing one is kept."""
    if not database.exists():
        database.parent.mkdir(parents=True, exist_ok=True)
        partial = database.with_suffix(f".{os.getpid()}")
        shutil.copyfile(template(), partial)
        partial.replace(database)
    return database


def _home() -> Path:
    AIRFLOW_HOME.mkdir(parents=True, exist_ok=True)
    return AIRFLOW_HOME


if __name__ == "__main__":
    try:
        template()
    except PermalakeError as error:
        sys.exit(f"permalake: {error}")
