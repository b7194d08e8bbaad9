"""Job ``compact``: days that lie in many small files → the same rows in few full ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import SparkSession

from permalake.config import load_settings
from permalake.lake.identity import open_database
from permalake.lake.maintenance import Done, alone, compact, crowded_tables
from permalake.pipeline import jobs
from permalake.spark.session import session


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    parser = argparse.ArgumentParser(prog="lake_maintenance")
    parser.add_argument("--network", action="append", required=True, help="may be given several times")
    parser.add_argument("--run-id", required=True)
    given = parser.parse_args(argv)
    settings = load_settings()
    database = open_database(settings)
    spark = spark or session(f"lake_maintenance {' '.join(given.network)}")
    target = settings.lake.target_bytes
    for network in given.network:
        with alone(settings, database, network, given.run_id) as work:
            for table in crowded_tables(database, network, target):
                jobs.say(str(Done.compacted(f"{network}.{table}", compact(spark, work, table, target))))


if __name__ == "__main__":
    jobs.run(main)
