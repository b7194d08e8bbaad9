"""The sample day on a real cluster, a master and two workers, gives the rows that one machine gives."""

from __future__ import annotations

import json

from support.spark_cluster import cluster
from support.whole_runs import assert_same, configuration, finish, rows


def test_a_cluster_gives_the_rows_that_one_machine_gives(tmp_path, undisturbed):
    config = configuration(tmp_path / "lake")
    with cluster(tmp_path / "cluster") as spark:
        finish(
            config,
            PERMALAKE_SPARK_MASTER=spark.master,
            PERMALAKE_SPARK_CORES="2",
            PERMALAKE_SPARK_DRIVER_MEMORY="1g",
            PERMALAKE_SPARK_EXECUTOR_MEMORY="1g",
            SPARK_LOCAL_IP="127.0.0.1",
        )
        (finished,) = spark.state()["completedapps"]
        assert finished["state"] == "FINISHED", json.dumps(finished)
        assert all(spark.executors(worker) for worker in range(2))
    on_cluster = rows(config, "shimmer")
    assert_same(on_cluster, undisturbed)
    assert (len(on_cluster["messages"]), len(on_cluster["milestones"])) == (81, 2)
