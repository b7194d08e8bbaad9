"""PySpark as the environment has it installed, instead of the zip that Spark puts before it.

Nothing keeps what Python compiles of a zip, so every process would compile PySpark's modules again.
"""

from __future__ import annotations

import sys
from pathlib import Path


def prefer_installed() -> None:
    """Take Spark's zips out of the import path where they are those of an installed PySpark.

    They stay where Spark is no Python package, and its zips are all that there is of PySpark.
    """
    sys.path[:] = [entry for entry in sys.path if not _is_installed(Path(entry))]


def _is_installed(entry: Path) -> bool:
    """Return whether ``entry`` is ``pyspark/python/lib/*.zip`` of a package on the import path."""
    if entry.suffix != ".zip" or entry.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    return str(entry.parents[3]) in sys.path
