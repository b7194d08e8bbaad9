"""A synthetic day through the jobs themselves, so that Java loads the classes that every Spark job needs.

Run by spark-submit for :mod:`permalake.spark.class_archive`, with a scratch folder as its argument.
"""

from __future__ import annotations

import os
import runpy
import sys
from datetime import date
from pathlib import Path

from permalake.paths import SPARK_JOBS
from permalake.spark.session import SMALL_CONF, session
from permalake_simulate.iota import tangle_generator
from permalake_simulate.iota.tangle_world import IotaWorld

_DAY = date(2022, 9, 28)
_JOBS = ("iota_ingest", "iota_analytics", "audit")
_CONFIG = """
[lake]
warehouse = "lake"
[networks.rehearsal]
protocol = "stardust"
bech32_hrp = "smr"
path = "tangle"
"""


def rehearse(folder: Path) -> None:
    """Build and audit a day of a few messages in ``folder``."""
    world = IotaWorld(
        "stardust", messages=40, days=1, start=_DAY, seed=1, bech32_hrp="smr", milestones_per_day=4
    )
    tangle_generator.simulate(None, world, folder / "tangle", say=lambda _: None)
    config = folder / "permalake.toml"
    config.write_text(_CONFIG, "utf-8")
    os.environ["PERMALAKE_CONFIG"] = str(config)
    spark = session("rehearsal", **SMALL_CONF)
    run = ["--network", "rehearsal", "--start", str(_DAY), "--end", str(_DAY), "--run-id", "rehearsal"]
    for job in _JOBS:
        runpy.run_path(str(SPARK_JOBS / f"{job}.py"))["main"](run, spark)
    spark.stop()


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]))
