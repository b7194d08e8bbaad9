"""Java options and Spark settings of a submit, by the size of the run's input."""

from __future__ import annotations

import os

from permalake.contracts.steps import DayInputs
from permalake.spark import class_archive
from permalake.spark.session import SMALL_CONF
from permalake.spark.sizes import MODERATE_BYTES, SMALL_BYTES, is_below
from permalake.spark.submit import is_local

# A large run needs the optimising compiler and a collector that keeps pace; with these, the sample's two jobs
# took half the processor time. Without that compiler Java reserves 48 MB for code, which several steps fill.
# A heap that begins small is collected again and again while it grows, and so is the space of classes. Sizes
# are shares, as Java does not start with a first heap above the driver's memory.
_SMALL = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    " -XX:+UseSerialGC -XX:InitialRAMPercentage=5 -XX:NewRatio=1 -XX:MetaspaceSize=256m"
)
# Generated code pays where a table has this many rows, planning anew at each stage does not; each core has a
# part.
_MODERATE_CONF = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(min(8, os.cpu_count() or 1)),
}


def java_options(inputs: DayInputs) -> str:
    """Return the options of the driver's JVM.

    ``PERMALAKE_SPARK_JAVA_OPTIONS`` replaces those that depend on size.
    """
    # On a cluster the driver only plans, whatever the size of the input.
    is_cheap = not is_local() or is_below(inputs.archive, _cheap_below(inputs))
    chosen = os.environ.get("PERMALAKE_SPARK_JAVA_OPTIONS", _SMALL if is_cheap else "")
    return " ".join(f"-Duser.timezone=UTC {chosen} {class_archive.java_options()}".split())


def session_conf(inputs: DayInputs) -> dict[str, str]:
    """Return the settings of the Spark session that go with the input's size."""
    if is_below(inputs.archive, SMALL_BYTES):
        return SMALL_CONF
    is_moderate = is_below(inputs.archive, min(_cheap_below(inputs), MODERATE_BYTES))
    return _MODERATE_CONF if is_moderate else {}


def _cheap_below(inputs: DayInputs) -> int:
    """Return the size below which what Java could compile does not repay it."""
    return max(inputs.cheap_below, SMALL_BYTES) if is_local() else SMALL_BYTES
