"""How large the input of a run is, and what that means for its Spark driver."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from permalake.config import Settings
from permalake.pipeline.request import WORMHOLE
from permalake.spark import class_archive
from permalake.spark.session import SMALL_CONF
from permalake.spark.submit import is_local

# A small day ends before the optimising compiler has earned what it costs: with these, the sample's two jobs
# took half the processor time. A large one needs that compiler and a collector that keeps pace.
SMALL_BYTES = 64 << 20
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def java_options(settings: Settings, network: str) -> str:
    """Options for the driver's JVM; ``PERMALAKE_SPARK_JAVA_OPTIONS`` replaces those that depend on size."""
    sized = _SMALL if is_small(settings, network) else ""
    chosen = os.environ.get("PERMALAKE_SPARK_JAVA_OPTIONS", sized)
    archive = class_archive.java_options() if is_local() else ""
    return " ".join(f"-Duser.timezone=UTC {chosen} {archive}".split())


def session_conf(settings: Settings, network: str) -> dict[str, str]:
    """Settings of the Spark session that go with the input's size."""
    return SMALL_CONF if is_small(settings, network) else {}


def is_small(settings: Settings, network: str) -> bool:
    """Whether the source is local and its files (compressed ones counted tenfold) are small altogether."""
    section = settings.wormhole if network == WORMHOLE else settings.network(network)
    if section is None or section.path is None:
        return False
    total = 0
    for size in _sizes(section.path):
        total += size
        if total > SMALL_BYTES:
            return False
    return True


def _sizes(root: Path) -> Iterator[int]:
    files = [root] if root.is_file() else (file for file in root.rglob("*") if file.is_file())
    for file in files:
        yield file.stat().st_size * (10 if file.suffix == ".gz" else 1)
