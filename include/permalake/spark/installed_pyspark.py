"""PySpark as the environment has it installed, instead of the archives that Spark puts before it.

Nothing keeps what Python compiles of a zip, so every process would compile PySpark's modules again. And at
the start of each task, a Python worker reads the list of files of every zip and jar in its import path again,
which takes 70 ms.
"""

from __future__ import annotations

import sys
from pathlib import Path


def prefer_installed() -> None:
    """Take Spark's archives out of the import path where they belong to an installed PySpark.

    They stay where Spark is no Python package, and its zips are all that there is of PySpark.
    """
    for entry in [entry for entry in sys.path if _is_installed(Path(entry))]:
        sys.path.remove(entry)
        sys.path_importer_cache.pop(entry, None)


def _is_installed(entry: Path) -> bool:
    """Return whether ``entry`` is an archive of a package ``pyspark`` that is on the import path."""
    if entry.suffix not in {".zip", ".jar"}:
        return False
    package = next((folder for folder in entry.parents if folder.name == "pyspark"), None)
    return package is not None and str(package.parent) in sys.path
