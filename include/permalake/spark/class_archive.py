"""The classes of Spark and of the lake, read and verified once for all submits on this machine.

A submit loads some 20,000 classes, half of its time before the first query. Java keeps them in an archive
that later processes map into memory (application class-data sharing). An archive fits one Java and one class
path; without one, or with another Java, a submit works as ever and takes longer.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from permalake.paths import JARS
from permalake.spark import jars


def file() -> Path:
    """Return the path of the archive for this machine's Java and jars."""
    import pyspark

    binary = Path(jars.java()).resolve()
    spark = Path(pyspark.__file__).parent / "jars"
    parts = [binary.parents[1] / "lib" / "modules", spark, *lake_jars()]
    digest = hashlib.sha256()
    for part in parts:
        status = part.stat() if part.exists() else None
        digest.update(f"{part} {status and (status.st_size, status.st_mtime_ns)}\0".encode())
    return JARS / f"classes-{digest.hexdigest()[:16]}.jsa"


def class_path() -> str:
    """Return the lake's jars for the driver's own class path: only their classes can be in an archive.

    Raises:
        PermalakeError: if the set-up has not fetched them.
    """
    jars.class_path()
    return os.pathsep.join(map(str, lake_jars()))


def java_options() -> str:
    """Return the option that makes a driver use the archive; nothing where there is none."""
    archive = file()
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:class+path=off" if archive.exists() else ""


def lake_jars() -> list[Path]:
    """Paths of the jars that every job needs."""
    return [(JARS / jars.jar_name(coordinate)).resolve() for coordinate in jars.COORDINATES]
