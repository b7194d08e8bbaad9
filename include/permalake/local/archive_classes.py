"""``make install``: keeps the classes of Spark jobs in an archive (:mod:`permalake.spark.class_archive`)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from permalake.errors import PermalakeError
from permalake.local import warm_up
from permalake.paths import JARS
from permalake.spark import class_archive

_TIMEOUT = 300


def create() -> Path | None:
    """Run a small day and keep its classes; None when they are kept already. Other Javas' archives go.

    :class:`PermalakeError` with the last line that the session printed when it fails.
    """
    target = class_archive.file()
    if target.exists():
        return None
    with tempfile.TemporaryDirectory(dir=JARS) as scratch:
        made = Path(scratch) / target.name
        options = f"-XX:ArchiveClassesAtExit={made} -Xlog:disable -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        command = [
            str(Path(sys.executable).parent / "spark-submit"),
            *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
            *("--conf", f"spark.driver.extraClassPath={class_archive.class_path()}"),
            *("--conf", f"spark.driver.extraJavaOptions={options}"),
            warm_up.__file__,
            scratch,
        ]
        environment = {
            # A warm-up run knows nothing of anyone's lake.
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


if __name__ == "__main__":
    try:
        if not class_archive.file().exists():
            sys.stdout.write("Java's classes, kept for all later runs\n")
        create()
    except (PermalakeError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"permalake: {error}; every submit will take a few seconds longer\n")
