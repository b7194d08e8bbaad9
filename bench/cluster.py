"""An IOTA day on a standalone Spark cluster of 1, 2 and 4 workers with one core each.

``python -m bench.cluster [MESSAGES]``: builds the same day on each. Every worker, with its executor and
Python, is pinned to one core of this machine; with more workers than cores they share. The driver, Airflow
included, shares the core of the first worker in each case, so one worker more is one core more.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import psutil

from bench.iota_build import DAY, archive, environment
from bench.machine import Usage, watch
from bench.simulated import COMMAND
from permalake.paths import ROOT

sys.path.append(str(ROOT / "tests"))
from support.spark_cluster import cluster

WORKERS = (1, 2, 4)
_WORKER = "org.apache.spark.deploy.worker.Worker"


def run(messages: int = 5_000_000) -> list[dict]:
    """Seconds of the build by number of workers."""
    source = archive(messages)
    built = {workers: _on(workers, source) for workers in WORKERS}
    one = built[WORKERS[0]].seconds
    return [
        {
            "name": f"IOTA day of {messages:,} messages on a cluster of {workers} single-core workers",
            "unit": "s",
            "ours": round(usage.seconds, 1),
            "peer": round(one, 1),
            "peer_name": "one worker",
            "ratio": round(one / usage.seconds, 3),
            "efficiency": round(one / usage.seconds / min(workers, len(os.sched_getaffinity(0))), 3),
        }
        for workers, usage in built.items()
        if workers > 1
    ]


def _on(workers: int, source: Path) -> Usage:
    with (
        tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder,
        cluster(Path(folder) / "spark", workers, memory="2g") as spark,
    ):
        cores = os.sched_getaffinity(0)
        _pin(sorted(cores))
        environ = environment(Path(folder), source) | {
            "PERMALAKE_SPARK_MASTER": spark.master,
            "PERMALAKE_SPARK_CORES": str(workers),
            "PERMALAKE_SPARK_EXECUTOR_MEMORY": "1g",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        os.sched_setaffinity(0, {min(cores)})
        try:
            return watch([COMMAND, "run", "iota", "--date", DAY], environ)
        finally:
            os.sched_setaffinity(0, cores)


def _pin(cores: list[int]) -> None:
    """Give each worker a core, which its children inherit."""
    own = [one for one in psutil.Process().children(recursive=True) if _is_worker(one)]
    for number, worker in enumerate(sorted(own, key=lambda one: one.pid)):
        for thread in worker.threads():
            os.sched_setaffinity(thread.id, {cores[number % len(cores)]})


def _is_worker(process: psutil.Process) -> bool:
    try:
        return _WORKER in " ".join(process.cmdline())
    except psutil.Error:  # it has ended
        return False


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
