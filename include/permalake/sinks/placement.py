"""The placement table of a network: which rows of the partitioned look-ups went where.

It lies in the lake under a ``catalog_name`` of its own: it grows when a store is written, not when days are
published, so it is no part of an attempt and never moved by a publication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts.placement import PERMANODE_PARTITIONS
from permalake.session import catalog_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOG = "permalake_stores"


class Placement:
    """Segments of one network; rows are only ever added."""

    def __init__(self, spark: SparkSession, settings: Settings, network: str) -> None:
        self._spark = spark
        self._name = f"{CATALOG}.`{network}`.{PERMANODE_PARTITIONS.name}"
        for key, value in catalog_conf(settings, CATALOG).items():
            spark.conf.set(key, value)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.`{network}`")
        columns = ", ".join(
            f"{field.name} {field.dataType.simpleString()}" for field in PERMANODE_PARTITIONS.spark.fields
        )
        spark.sql(f"CREATE TABLE IF NOT EXISTS {self._name} ({columns}) USING iceberg PARTITIONED BY (date)")

    def known(self, variant: str) -> DataFrame:
        """Segments of a look-up table, of every day."""
        from pyspark.sql import functions as F

        return self._spark.read.table(self._name).where(F.col("variant") == variant)

    def add(self, segments: DataFrame) -> None:
        """Record segments; once this returns they hold for ever."""
        from pyspark.sql import functions as F

        columns = [
            F.col(field.name).cast(field.dataType).alias(field.name)
            for field in PERMANODE_PARTITIONS.spark.fields
        ]
        segments.select(*columns).sortWithinPartitions("date", "variant", "hint").writeTo(self._name).append()
