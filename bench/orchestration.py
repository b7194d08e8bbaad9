"""Orchestration: what a day costs beside its Spark tasks, and days per hour, one by one and as a range.

``python -m bench.orchestration [DAYS]``. A day goes through the DAG as ``permalake run`` does it, every step
included. Its overhead is the wall time in which no Spark task runs, by Spark's own event logs: Airflow,
imports, Java's start, planning, commits, publishing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa

from permalake.paths import SAMPLE
from permalake.simulate import iota
from permalake.simulate.world import IotaWorld
from permalake.spans import joined

TARGET_SECONDS = 60
RANGE_DAYS = 365
SINGLE_DAYS = 2
_FIRST = date(2023, 1, 1)
_MESSAGES_A_DAY = 60
_CONFIG = """
[lake]
warehouse = "{lake}"
[networks.{name}]
protocol = "stardust"
bech32_hrp = "smr"
path = "{path}"
"""


def run(days: int = RANGE_DAYS) -> list[dict]:
    """Seconds without a Spark task for the bundled day; days per hour of a range beside a run per day."""
    with tempfile.TemporaryDirectory(prefix="bench-orchestration-") as folder:
        place = Path(folder)
        _permalake(place, "sample", SAMPLE / "shimmer", date(2022, 9, 28))  # caches of files and of Airflow
        wall, busy = _permalake(place, "shimmer", SAMPLE / "shimmer", date(2022, 9, 28))
        world = IotaWorld(
            "stardust",
            messages=days * _MESSAGES_A_DAY,
            days=days,
            start=_FIRST,
            seed=5,
            bech32_hrp="smr",
            milestones_per_day=6,
        )
        iota.simulate(None, world, place / "tangle")
        single = sum(
            _permalake(place, "single", place / "tangle", _FIRST + timedelta(number))[0]
            for number in range(SINGLE_DAYS)
        )
        whole, _ = _permalake(place, "range", place / "tangle", _FIRST, _FIRST + timedelta(days - 1))
    overhead = wall - busy
    each = SINGLE_DAYS * 3600 / single
    together = days * 3600 / whole
    return [
        {
            "name": "a small day: wall time in which no Spark task runs",
            "unit": "s (less is better)",
            "ours": round(overhead, 1),
            "peer": TARGET_SECONDS,
            "peer_name": "the target for two cores",
            "ratio": round(TARGET_SECONDS / overhead, 2),
            "wall": round(wall, 1),
        },
        {
            "name": f"{days} small days built as one range",
            "unit": "days/h",
            "ours": round(together),
            "peer": round(each),
            "peer_name": "a run for each day",
            "ratio": round(together / each, 1),
            "seconds": round(whole, 1),
        },
    ]


def _permalake(
    place: Path, lake: str, source: Path, start: date, end: date | None = None
) -> tuple[float, float]:
    """Seconds of a run, and those in which at least one Spark task ran."""
    config = place / f"{lake}.toml"
    config.write_text(_CONFIG.format(lake=place / lake, name="shimmer", path=source))
    logs = Path(tempfile.mkdtemp(dir=place))
    command = [str(Path(sys.executable).with_name("permalake")), "run", "iota", "--date", str(start)]
    environment = {
        **os.environ,
        "PERMALAKE_CONFIG": str(config),
        "PERMALAKE_SPARK_EVENT_LOG": str(logs),
    }
    began = time.monotonic()
    subprocess.run([*command, "--to", str(end or start)], env=environment, stdout=sys.stderr, check=True)
    wall = time.monotonic() - began
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
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else RANGE_DAYS), indent=1))
