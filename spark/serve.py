"""Job ``serve``: published days → Cassandra (IOTA networks) and Bigtable (Wormhole events).

Writes every published day that a configured store does not have yet, not only the run's own days: whatever a
store missed while it was down is caught up by the next run.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from permalake.config import load_settings
from permalake.pipeline import jobs
from permalake.spark.session import session
from permalake.stores.serve import serve


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("serve", argv)
    settings = load_settings()
    spark = spark or session(f"serve {job.network}")
    for store, days in serve(spark, settings, job.network).items():
        jobs.say(f"serve {job.network}: {len(days)} days into {store}")


if __name__ == "__main__":
    jobs.run(main)
