"""Orchestration: what a day costs beside its Spark tasks.

A day goes through the DAG as ``permalake run`` does it, every step included. Its overhead is the wall time
in which no Spark task runs, by Spark's own event logs: Airflow, imports, Java's start, planning, commits,
publishing.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from bench.machine import timed
from permalake.intervals import joined
from permalake.paths import SAMPLE

TARGET_SECONDS = 60
DAY = "2022-09-28"
TIMES = 3
_CONFIG = """
[lake]
warehouse = "{lake}"
[networks.shimmer]
protocol = "stardust"
bech32_hrp = "smr"
path = "{path}"
"""


def run() -> list[dict]:
    """Seconds without a Spark task for the bundled day, the median of several runs in fresh lakes."""
    with tempfile.TemporaryDirectory(prefix="bench-orchestration-") as folder:
        _permalake(Path(folder), "first")  # caches of files and of Airflow
        runs = [_permalake(Path(folder), f"sample{number}") for number in range(TIMES)]
    overheads = [wall - busy for wall, busy in runs]
    overhead = statistics.median(overheads)
    return [
        {
            "name": "a small day: wall time in which no Spark task runs",
            "unit": "s (less is better)",
            "ours": round(overhead, 1),
            "peer": TARGET_SECONDS,
            "peer_name": "the target for two cores",
            "ratio": round(TARGET_SECONDS / overhead, 2),
            "all": [round(one, 1) for one in overheads],
            "wall": [round(wall, 1) for wall, _ in runs],
        },
    ]


def _permalake(place: Path, lake: str) -> tuple[float, float]:
    """Seconds of a run of the bundled day, and those in which at least one Spark task ran."""
    config = place / f"{lake}.toml"
    config.write_text(_CONFIG.format(lake=place / lake, path=SAMPLE / "shimmer"))
    logs = Path(tempfile.mkdtemp(dir=place))
    command = [str(Path(sys.executable).with_name("permalake")), "run", "iota", "--date", DAY]
    environment = {**os.environ, "PERMALAKE_CONFIG": str(config), "PERMALAKE_SPARK_EVENT_LOG": str(logs)}
    wall = timed(lambda: subprocess.run(command, env=environment, stdout=sys.stderr, check=True))
    return wall, sum(end - start for start, end in joined(_tasks(logs))) / 1000


def _tasks(logs: Path) -> Iterator[tuple[int, int]]:
    """Begin and end of every task in Spark's event logs, in milliseconds."""
    for file in logs.rglob("*.zstd"):
        with pa.CompressedInputStream(pa.OSFile(str(file)), "zstd") as stream:
            for line in stream.read().splitlines():
                if line.startswith(b'{"Event":"SparkListenerTaskEnd"'):
                    info = json.loads(line)["Task Info"]
                    yield info["Launch Time"], info["Finish Time"]


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
