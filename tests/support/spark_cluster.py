"""A real standalone Spark cluster on this machine: a master and its workers, each a process of its own."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from permalake.local.services.daemon import LOOPBACK, Daemon, free_port

SPARK_CLASS = str(Path(sys.executable).parent / "spark-class")
_PACKAGE = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Cluster:
    """``master`` is its address, ``folder`` holds a work folder per worker."""

    master: str
    page: str
    folder: Path

    def state(self) -> dict[str, Any]:
        """What the master tells of itself."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=5) as answer:
            return json.load(answer)

    def executors(self, worker: int) -> list[Path]:
        """Folders of the executors that a worker has run."""
        return sorted((self.folder / f"worker-{worker}" / "work").glob("app-*/*"))


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """Start the cluster, one core a worker; all of it is stopped at the end."""
    port, page = free_port(), free_port()
    made = Cluster(f"spark://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{page}", folder)
    # Servers of a minute: the optimising compiler would cost more than it gives.
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
    }

    def alive(count: int) -> bool:
        try:
            return made.state()["aliveworkers"] >= count
        except OSError:
            return False

    with ExitStack() as stack:
        master = Daemon("master", folder / "master")
        command = [SPARK_CLASS, f"{_PACKAGE}.master.Master", "--host", LOOPBACK]
        command += ["--port", str(port), "--webui-port", str(page)]
        stack.callback(master.stop)
        master.start(command, port, lambda: alive(0), 60, environment)
        for number in range(workers):
            place = folder / f"worker-{number}"
            worker = Daemon("worker", place)
            command = [SPARK_CLASS, f"{_PACKAGE}.worker.Worker", "--host", LOOPBACK, "--cores", "1"]
            command += ["--memory", memory, "--work-dir", str(place / "work")]
            command += ["--webui-port", str(free_port()), made.master]
            stack.callback(worker.stop)
            worker.start(command, free_port(), lambda count=number + 1: alive(count), 60, environment)
        yield made
