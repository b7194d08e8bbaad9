"""The jars that Spark needs: fetched once by the Ivy that Spark brings, verified against ``jars.sha256``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from permalake.errors import PermalakeError
from permalake.paths import JARS

COORDINATES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.54.1.0",
    "org.postgresql:postgresql:42.7.14",
)
# What writes into Cassandra; fetched when it is first written, not needed for the lake. The connector's own
# dependencies are listed as far as Spark does not bring them (it has Scala, slf4j, commons).
STORE_COORDINATES = (
    "com.datastax.spark:spark-cassandra-connector_2.13:3.5.1",
    "com.datastax.spark:spark-cassandra-connector-driver_2.13:3.5.1",
    "org.apache.cassandra:java-driver-core-shaded:4.18.1",
    "org.apache.cassandra:java-driver-query-builder:4.18.1",
    "org.apache.cassandra:java-driver-mapper-runtime:4.18.1",
    "com.datastax.oss:java-driver-shaded-guava:25.1-jre-graal-sub-1",
    "com.datastax.oss:native-protocol:1.5.1",
    "com.typesafe:config:1.4.1",
    "org.hdrhistogram:HdrHistogram:2.1.12",
    "org.reactivestreams:reactive-streams:1.0.3",
)

# What reaches a warehouse on s3://: Iceberg's own access, and Hadoop's for landings.
S3_COORDINATES = (
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    "org.apache.hadoop:hadoop-aws:3.4.2",
    "software.amazon.awssdk:s3-transfer-manager:2.54.17",
    "software.amazon.awssdk:apache-client:2.54.17",
)

# What reaches a warehouse on gs://, whole in one jar.
GS_COORDINATES = ("org.apache.hadoop:hadoop-gcp:3.5.0",)

MORE = {"s3": S3_COORDINATES, "gs": GS_COORDINATES, "stores": STORE_COORDINATES}
"""Further sets that ``python -m permalake.spark.jars NAME…`` fetches."""

EVERY = (*COORDINATES, *(coordinate for more in MORE.values() for coordinate in more))
"""Maven coordinates of all jars."""

DIGESTS = Path(__file__).with_name("jars.sha256")
"""SHA-256 digests of all jars, in the format of ``sha256sum``."""

# A settings file of our own: Spark's default chain also asks ~/.m2, where a half-resolved jar fails the run.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def jar_name(coordinate: str) -> str:
    """Return the file name of a Maven coordinate ``group:artifact:version``."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def missing(coordinates: Sequence[str] = COORDINATES) -> list[str]:
    """Return the coordinates whose jar is not in the project's folder."""
    return [coordinate for coordinate in coordinates if not (JARS / jar_name(coordinate)).is_file()]


def class_path(coordinates: Sequence[str] = COORDINATES) -> str:
    """Return the jars as one ``--jars`` value.

    Raises:
        PermalakeError: A jar has not been fetched, or has another digest than ``jars.sha256`` lists.
    """
    if lacking := missing(coordinates):
        raise PermalakeError(f"{jar_name(lacking[0])} is missing in {JARS}; run `{_fetches(lacking[0])}`")
    files = [JARS / jar_name(coordinate) for coordinate in coordinates]
    for file in files:
        verify(file)
    return ",".join(map(str, files))


def _fetches(coordinate: str) -> str:
    """Return the command that fetches a jar."""
    if coordinate in COORDINATES:
        return "make install"
    for name in ("s3", "gs"):
        if coordinate in MORE[name]:
            return f"python -m permalake.spark.jars {name}"
    return "permalake services up"


def java() -> str:
    """Return the path of a Java 17+ binary; raise :class:`PermalakeError` that says how to get one."""
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


def resolve(coordinates: Sequence[str] = COORDINATES) -> list[Path]:
    """Fetch the jars that are missing and verify all of them; return the new files.

    A jar appears in the folder whole and verified, or not at all.

    Raises:
        PermalakeError: A jar cannot be fetched, or has another digest than ``jars.sha256`` lists.
    """
    lacking = missing(coordinates)
    for coordinate in coordinates:
        if coordinate not in lacking:
            verify(JARS / jar_name(coordinate))
    if not lacking:
        return []
    JARS.mkdir(parents=True, exist_ok=True)
    new = []
    with tempfile.TemporaryDirectory(dir=JARS) as scratch:
        for coordinate in lacking:
            retrieve(coordinate, Path(scratch), "-notransitive")
            fetched = Path(scratch) / jar_name(coordinate)
            verify(fetched)
            new.append(fetched.rename(JARS / fetched.name))
    return new


def digests(listed: Path | None = None) -> dict[str, str]:
    """Return the expected SHA-256 digest of every jar, in hexadecimal, by file name.

    ``listed`` is another file than ``jars.sha256``.
    """
    lines = (line.split() for line in (listed or DIGESTS).read_text("utf-8").splitlines())
    return {name: digest for digest, name in lines}


def verify(jar: Path, listed: Path | None = None) -> None:
    """Raise :class:`PermalakeError` unless the jar has the digest that :func:`digests` returns."""
    expected = digests(listed).get(jar.name)
    if expected is None:
        name = (listed or DIGESTS).name
        raise PermalakeError(f"{jar.name} has no digest in {name}; add the one its publisher states")
    status = jar.stat()
    digest = _digest(jar, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if digest != expected:
        raise PermalakeError(
            f"{jar.name} has the SHA-256 digest {digest}, not {expected}; delete {jar} and run `make install`"
        )


@lru_cache(maxsize=256)
def _digest(jar: Path, size: int, modified: int, changed: int) -> str:  # noqa: ARG001
    """Return a file's digest; it is read again when the file system says that it is another one.

    A gigabyte takes most of a second, and a submit asks for the same jars several times.
    """
    with jar.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def retrieve(coordinate: str, folder: Path, *options: str) -> None:
    """Fetch a coordinate into ``folder``, with its dependencies unless ``-notransitive`` is given.

    Raises:
        PermalakeError: The jar does not arrive.
    """
    asked = ["-dependency", *coordinate.split(":"), "-confs", "default", "-types", "jar", "bundle"]
    target = f"{folder}/[artifact]-[revision](-[classifier]).jar"
    done = ivy(folder, *options, "-warn", *asked, "-retrieve", target)
    if done.returncode or not (folder / jar_name(coordinate)).is_file():
        last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
        raise PermalakeError(f"{coordinate} could not be fetched ({last[0].strip()}); check the network")


def ivy(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the Ivy that Spark brings, with a cache in ``folder``; return what it printed."""
    import pyspark

    program = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    settings = folder / "ivysettings.xml"
    settings.write_text(_IVY_SETTINGS.format(cache=folder / "cache"), "utf-8")
    command = [java(), "-jar", str(program), "-settings", str(settings), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    try:
        for file in resolve(COORDINATES + sum((MORE[name] for name in sys.argv[1:]), ())):
            sys.stdout.write(f"fetched {file.name}\n")
    except PermalakeError as error:
        sys.exit(f"permalake: {error}")
