"""The classes of Spark and of the lake, read and verified once for all submits on this machine.

A submit loads some 20,000 classes, half of its time before the first query. Java keeps them in an archive
that later processes map into memory (application class-data sharing). An archive fits one Java and one class
path; without one, or with another Java, a submit works as ever and takes longer.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from permalake import jars, rehearsal
from permalake.errors import PermalakeError
from permalake.paths import JARS

_TIMEOUT = 300


def file() -> Path:
    """Where the archive for this machine's Java and jars belongs."""
    import pyspark

    binary = Path(jars.java()).resolve()
    spark = Path(pyspark.__file__).parent / "jars"
    parts = [binary.parents[1] / "lib" / "modules", spark, *_lake_jars()]
    digest = hashlib.sha256()
    for part in parts:
        status = part.stat() if part.exists() else None
        digest.update(f"{part} {status and (status.st_size, status.st_mtime_ns)}\0".encode())
    return JARS / f"classes-{digest.hexdigest()[:16]}.jsa"


def class_path() -> str:
    """The lake's jars for the driver's own class path: only classes from there can be in an archive;
    :class:`PermalakeError` when the set-up has not fetched them."""
    jars.class_path()
    return os.pathsep.join(map(str, _lake_jars()))


def java_options() -> str:
    """The option that makes a driver use the archive; nothing where there is none."""
    archive = file()
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:class+path=off" if archive.exists() else ""


def create() -> Path | None:
    """Run a small day and keep its classes; None when they are kept already. Other Javas' archives go.

    :class:`PermalakeError` with the last line that the session printed when it fails.
    """
    target = file()
    if target.exists():
        return None
    with tempfile.TemporaryDirectory(dir=JARS) as scratch:
        made = Path(scratch) / target.name
        options = f"-XX:ArchiveClassesAtExit={made} -Xlog:disable -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        command = [
            str(Path(sys.executable).parent / "spark-submit"),
            *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
            *("--conf", f"spark.driver.extraClassPath={class_path()}"),
            *("--conf", f"spark.driver.extraJavaOptions={options}"),
            rehearsal.__file__,
            scratch,
        ]
        environment = {
            # A rehearsal knows nothing of anyone's lake.
            **{name: value for name, value in os.environ.items() if not name.startswith("PERMALAKE_")},
            "PERMALAKE_HOME": scratch,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT
        )
        if done.returncode or not made.exists():
            lines = [line for line in done.stderr.strip().splitlines() if " INFO " not in line]
            raise PermalakeError(f"Spark's classes could not be archived: {(lines or ['no output'])[-1]}")
        for old in JARS.glob("classes-*.jsa"):
            old.unlink()
        return made.rename(target)


def _lake_jars() -> list[Path]:
    return [(JARS / jars.jar_name(coordinate)).resolve() for coordinate in jars.COORDINATES]


if __name__ == "__main__":
    try:
        if not file().exists():
            sys.stdout.write("Java's classes, kept for all later runs\n")
        create()
    except (PermalakeError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"permalake: {error}; every submit will take a few seconds longer\n")
