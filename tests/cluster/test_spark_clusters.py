"""The sample day on real clusters, Spark's own and YARN, gives the rows that one machine gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark
import pytest

from support import yarn_cluster
from support.spark_cluster import cluster
from support.whole_runs import assert_same, configuration, finish, rows

# Executors of a minute: the optimising compiler would cost more than it gives.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DEFAULTS = {"spark.executor.defaultJavaOptions": BRIEF}
YARN_DEFAULTS = {
    **DEFAULTS,
    "spark.executor.instances": "2",
    "spark.executor.cores": "1",
    "spark.yarn.am.memory": "512m",
    "spark.yarn.am.extraJavaOptions": BRIEF,
    # All nodes are this machine: left out, each submit packs, copies and unpacks all of Spark's jars.
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent / 'jars'}/*",
}


def spark_settings(folder: Path, defaults: dict[str, str]) -> str:
    """A folder with Spark's defaults."""
    folder.mkdir()
    lines = [f"{name} {value}\n" for name, value in defaults.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))
    return str(folder)


def test_a_cluster_gives_the_rows_that_one_machine_gives(tmp_path, undisturbed) -> None:
    config = configuration(tmp_path / "lake")
    with cluster(tmp_path / "cluster") as spark:
        finish(
            config,
            PERMALAKE_SPARK_MASTER=spark.master,
            PERMALAKE_SPARK_CORES="2",
            PERMALAKE_SPARK_DRIVER_MEMORY="1g",
            PERMALAKE_SPARK_EXECUTOR_MEMORY="1g",
            SPARK_CONF_DIR=spark_settings(tmp_path / "spark", DEFAULTS),
            SPARK_LOCAL_IP="127.0.0.1",
        )
        (finished,) = spark.state()["completedapps"]
        assert finished["state"] == "FINISHED", json.dumps(finished)
        assert all(spark.executors(worker) for worker in range(2))
    on_cluster = rows(config, "shimmer")
    assert_same(on_cluster, undisturbed)
    assert (len(on_cluster["messages"]), len(on_cluster["milestones"])) == (81, 2)


@pytest.mark.long
def test_yarn_gives_the_rows_that_one_machine_gives(tmp_path, undisturbed) -> None:
    config = configuration(tmp_path / "lake")
    settings = spark_settings(tmp_path / "spark", YARN_DEFAULTS)
    with yarn_cluster.cluster(tmp_path / "yarn") as hadoop:
        finish(
            config,
            PERMALAKE_SPARK_MASTER="yarn",
            PERMALAKE_SPARK_DRIVER_MEMORY="1g",
            PERMALAKE_SPARK_EXECUTOR_MEMORY="1g",
            HADOOP_CONF_DIR=str(hadoop),
            SPARK_CONF_DIR=settings,
            SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_PYTHON=sys.executable,
        )
        # Each executor and the application's master had a container of its own.
        containers = {path.name for path in (tmp_path / "yarn").rglob("container_*") if path.is_dir()}
        assert len(containers) >= 3
    on_yarn = rows(config, "shimmer")
    assert_same(on_yarn, undisturbed)
    assert (len(on_yarn["messages"]), len(on_yarn["milestones"])) == (81, 2)
