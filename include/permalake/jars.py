"""The jars that Spark needs, resolved once into the project's own folder by the Ivy that Spark brings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from permalake.errors import PermalakeError
from permalake.paths import JARS

COORDINATES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.8",
)

# A settings file of our own: Spark's default chain also asks ~/.m2, where a half-resolved jar fails the run.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def jar_name(coordinate: str) -> str:
    """File name of a Maven coordinate ``group:artifact:version``."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def missing() -> list[str]:
    """Coordinates whose jar is not in the project's folder."""
    return [coordinate for coordinate in COORDINATES if not (JARS / jar_name(coordinate)).is_file()]


def class_path() -> str:
    """The jars as one ``--jars`` value; :class:`PermalakeError` when the set-up has not fetched them."""
    if lacking := missing():
        raise PermalakeError(f"{jar_name(lacking[0])} is missing in {JARS}; run `make install`")
    return ",".join(str(JARS / jar_name(coordinate)) for coordinate in COORDINATES)


def java() -> str:
    """Path of a Java 17+ binary; :class:`PermalakeError` that says how to get one."""
    home = os.environ.get("JAVA_HOME")
    binary = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = "install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    if not binary or not Path(binary).exists():
        raise PermalakeError(f"Java is missing; {advice}")
    text = subprocess.run([binary, "-version"], capture_output=True, text=True, check=False).stderr
    version = text.partition('version "')[2].partition(".")[0]
    if not version.isdigit() or int(version) < 17:
        raise PermalakeError(f"Java {version or 'of unknown version'} is too old; {advice}")
    return binary


def resolve() -> list[Path]:
    """Fetch what is missing; returns the new files. A jar appears whole or not at all."""
    import pyspark

    lacking = missing()
    if not lacking:
        return []
    JARS.mkdir(parents=True, exist_ok=True)
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    new = []
    with tempfile.TemporaryDirectory(dir=JARS) as scratch:
        settings = Path(scratch) / "ivysettings.xml"
        settings.write_text(_IVY_SETTINGS.format(cache=Path(scratch) / "cache"), "utf-8")
        for coordinate in lacking:
            command = [java(), "-jar", str(ivy), "-settings", str(settings), "-notransitive", "-warn"]
            command += ["-dependency", *coordinate.split(":"), "-types", "jar", "bundle"]
            command += ["-retrieve", f"{scratch}/[artifact]-[revision].jar"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            fetched = Path(scratch) / jar_name(coordinate)
            if done.returncode or not fetched.is_file():
                last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
                raise PermalakeError(
                    f"{coordinate} could not be fetched ({last[0].strip()}); check the network"
                )
            new.append(fetched.rename(JARS / fetched.name))
    return new


if __name__ == "__main__":
    try:
        for file in resolve():
            sys.stdout.write(f"fetched {file.name}\n")
    except PermalakeError as error:
        sys.exit(f"permalake: {error}")
