"""The placement of rows in partitioned look-ups: recorded in the lake, indexed in the store.

The lake's table lies under a ``catalog_name`` of its own: it grows when a store is written, not when days are
published, so no attempt holds it and no publication moves it. A day's segments are read from it by date. How
far a key is filled is read from an index in the store, so a day's cost does not grow with history.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts.schema import Column, Table
from permalake.iota.permanode.chrysalis_schema import PLACES, second_keyspace
from permalake.iota.permanode.partitions import KEY, ends_of
from permalake.lake.state import STORES
from permalake.spark.catalog_database import bind_catalog
from permalake.stores import cassandra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PERMANODE_PARTITIONS = Table(
    "permanode_partitions",
    "iota",
    "Where rows of the partitioned look-ups went, so that a day published again lands where it was. Rows are "
    "only ever added.",
    (
        Column("variant", "string", "Look-up table.", values=("address", "index", "parent")),
        Column("hint", "string", "Key: address, tag in hex, or message id."),
        Column("partition_id", "int", "Partition of the key.", minimum=0, maximum=32767),
        Column("first", "long", "Place within the partition of the first of these rows.", minimum=0),
        Column("rows", "long", "How many places the rows of this day take from there.", minimum=1),
    ),
    key=("variant", "hint", "partition_id", "first"),
    sort=("variant", "hint", "partition_id"),
)
"""Which partitions of the Chrysalis permanode's look-ups hold which rows."""


class Placement:
    """Segments of one network; rows are only added."""

    def __init__(self, spark: SparkSession, settings: Settings, network: str) -> None:
        self._spark = spark
        self._settings = settings.cassandra
        self._keyspace = second_keyspace(network)
        self._name = f"{STORES}.`{network}`.{PERMANODE_PARTITIONS.name}"
        bind_catalog(spark, settings, STORES)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {STORES}.`{network}`")
        columns = ", ".join(
            f"{field.name} {field.dataType.simpleString()}" for field in PERMANODE_PARTITIONS.spark.fields
        )
        spark.sql(f"CREATE TABLE IF NOT EXISTS {self._name} ({columns}) USING iceberg PARTITIONED BY (date)")

    def of_days(self, variant: str, dates: Sequence[date]) -> DataFrame:
        """Return segments of a look-up table that hold rows of these days."""
        from pyspark.sql import functions as F

        rows = self._spark.read.table(self._name)
        return rows.where((F.col("variant") == variant) & F.col("date").isin(list(dates)))

    def ends(self, keys: DataFrame) -> DataFrame:
        """Return how far the partitions of ``keys`` (variant, hint) are filled: variant, hint, taken."""
        return cassandra.lookup(keys.select(*KEY).distinct(), self._settings, self._keyspace, PLACES)

    def add(self, segments: DataFrame) -> None:
        """Record segments for good."""
        from pyspark.sql import functions as F

        columns = [
            F.col(field.name).cast(field.dataType).alias(field.name)
            for field in PERMANODE_PARTITIONS.spark.fields
        ]
        segments.select(*columns).sortWithinPartitions("date", "variant", "hint").writeTo(self._name).append()

    def index(self, segments: DataFrame, micros: int, ends: DataFrame | None = None) -> None:
        """Note in the index how far these segments go, where it does not hold more already.

        ``ends`` are its entries, as far as the caller has read them.
        """
        from pyspark.sql import functions as F

        mine = ends_of(segments).localCheckpoint()
        noted = (self.ends(mine) if ends is None else ends).withColumnRenamed("taken", "noted")
        further = mine.join(noted, list(KEY), "left").where(
            F.col("noted").isNull() | (F.col("noted") < F.col("taken"))
        )
        cassandra.write(further.select(*PLACES.columns), self._settings, self._keyspace, PLACES, micros)
