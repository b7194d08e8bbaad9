"""Job ``analytics`` of an IOTA network: decoded rows and staged tables → staged analytics tables."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from permalake import jobs
from permalake.config import load_settings
from permalake.contracts import IOTA_TABLES
from permalake.lake import Lake
from permalake.session import session
from permalake.transforms.decoded import DECODED
from permalake.transforms.iota_tables import analytics_tables


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("iota_analytics", argv)
    settings = load_settings()
    spark = spark or session(f"iota_analytics {job}")
    attempt = Lake(settings).resume(job.network, job.run_id)
    decoded = spark.read.schema(DECODED).parquet(attempt.landing)
    chunk_size = settings.network(job.network).chunk_size
    for name, frame in analytics_tables(
        decoded, lambda table: attempt.days(spark, table), chunk_size
    ).items():
        attempt.stage(frame(), IOTA_TABLES[name])
    jobs.say(f"analytics {job}: {jobs.counted(attempt, 'ms_analytics', 'metrics_cache', 'daily_analytics')}")


if __name__ == "__main__":
    jobs.run(main)
