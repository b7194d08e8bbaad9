"""The Spark job's own log: every stage and task with its times, as Spark's history server reads it."""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from permalake.errors import ConfigError
from permalake.paths import HOME

KEPT_DAYS = 30
VARIABLE = "PERMALAKE_SPARK_EVENT_LOG"
_MADE = re.compile(r".+_\d{8}T\d{6}-\d+")
"""Names of the folders that :func:`folder` makes."""


def folder(name: str) -> Path | None:
    """Return a new folder for the event log of one submit, None where none is kept.

    It lies below ``PERMALAKE_SPARK_EVENT_LOG`` (set and empty: no log) or below our home; its like that are
    older than :data:`KEPT_DAYS` are deleted.

    Raises:
        ConfigError: if the variable names no folder of this machine.
    """
    root = os.environ.get(VARIABLE, str(HOME / "logs" / "spark"))
    if not root:
        return None
    if "://" in root:
        raise ConfigError(f"{VARIABLE} {root}: not a folder of this machine; leave it empty for no log")
    place = Path(root).resolve()
    made = place / f"{name}_{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"
    made.mkdir(parents=True, exist_ok=True)
    oldest = time.time() - KEPT_DAYS * 86400
    for entry in os.scandir(place):
        with suppress(FileNotFoundError):  # another submit deletes, too
            if _MADE.fullmatch(entry.name) and entry.is_dir() and entry.stat().st_mtime < oldest:
                shutil.rmtree(entry.path, ignore_errors=True)
    return made


def conf(place: Path | None) -> dict[str, str]:
    """Spark settings that write it there."""
    if place is None:
        return {}
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": place.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.rolling.enabled": "false",
    }
