"""The sample day on a real cluster, a master and two workers, gives the rows that one machine gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from spark_cluster import cluster

from permalake.config import Settings
from permalake.contracts import IOTA_TABLES
from permalake.lake import Lake
from permalake.paths import ROOT

PERMALAKE = str(Path(sys.executable).parent / "permalake")


def build(warehouse: Path, master: str) -> Lake:
    """The sample day of Shimmer, as a user builds it."""
    done = subprocess.run(
        [PERMALAKE, "run", "iota", "--date", "2022-09-28"],
        env={
            **os.environ,
            "PERMALAKE_CONFIG": str(ROOT / "permalake.toml"),
            "PERMALAKE_LAKE__WAREHOUSE": str(warehouse),
            "PERMALAKE_SPARK_MASTER": master,
            "PERMALAKE_SPARK_CORES": "2",
            "PERMALAKE_SPARK_DRIVER_MEMORY": "1g",
            "PERMALAKE_SPARK_EXECUTOR_MEMORY": "1g",
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Lake(Settings(lake={"warehouse": str(warehouse)}))  # type: ignore[arg-type]


def rows(lake: Lake) -> dict[str, list[dict]]:
    """All rows, but for the moments at which something was seen."""
    return {
        name: lake.query(
            f"select * exclude ({', '.join(contract.keeps_clock)}) from shimmer.{name} order by all"
            if contract.keeps_clock
            else f"select * from shimmer.{name} order by all"
        ).to_pylist()
        for name, contract in IOTA_TABLES.items()
    }


def test_a_cluster_gives_the_rows_that_one_machine_gives(tmp_path):
    with cluster(tmp_path / "cluster") as spark:
        on_cluster = rows(build(tmp_path / "one", spark.master))
        finished = spark.state()["completedapps"]
        assert len(finished) >= 3 and all(app["state"] == "FINISHED" for app in finished), json.dumps(
            finished
        )
        assert all(spark.executors(worker) for worker in range(2))
    assert rows(build(tmp_path / "two", "local[2]")) == on_cluster
    assert (len(on_cluster["messages"]), len(on_cluster["milestones"])) == (81, 2)
