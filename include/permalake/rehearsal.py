"""Does in small what every Spark job does, so that Java meets the classes that they need.

Run by spark-submit for :mod:`permalake.orchestrate.class_archive`, with a scratch folder as its argument.
"""

from __future__ import annotations

import sys


def rehearse(folder: str) -> None:
    """Tables of a catalog, Parquet, a worker in Python, aggregates, joins."""
    from pyspark.sql import functions as F

    from permalake.session import session

    catalog = "spark.sql.catalog.rehearsal"
    spark = session(
        "rehearsal",
        **{
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "jdbc",
            f"{catalog}.warehouse": folder,
            f"{catalog}.uri": f"jdbc:sqlite:{folder}/catalog.db",
            f"{catalog}.jdbc.schema-version": "V1",
        },
    )
    rows = spark.range(200).selectExpr("id", "date'2022-09-28' AS date", "cast(id AS string) AS text")
    rows.mapInArrow(lambda batches: batches, rows.schema).write.parquet(f"{folder}/landing")
    landed = spark.read.parquet(f"{folder}/landing").persist()
    spark.sql("CREATE NAMESPACE rehearsal.small")
    spark.sql("CREATE TABLE rehearsal.small.rows (id long, date date, text string) PARTITIONED BY (date)")
    for _ in range(2):
        landed.sort("id").writeTo("rehearsal.small.rows").overwrite(F.expr("date = date'2022-09-28'"))
    table = spark.read.table("rehearsal.small.rows")
    sums = table.groupBy("date").agg(F.count_distinct("text"), F.sum("id"), F.collect_list(F.struct("id")))
    table.join(sums, "date").unionByName(sums.join(landed, "date")).count()
    table.selectExpr("*", "row_number() OVER (PARTITION BY date ORDER BY id) AS place").collect()
    spark.stop()


if __name__ == "__main__":
    rehearse(sys.argv[1])
