"""Partitions of look-up tables: a row goes to the earliest one that was not full when it came.

A *segment* is a number of ``rows`` of one key and day in partition ``partition_id``, from place ``first`` on.
Segments are only added, so a row keeps its place as long as its rank among the rows of its key and day is the
same.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

KEY = ("variant", "hint")
_BITS = 40
"""``taken`` is the newest partition of a key and, in the lowest bits, how many places of it are taken."""


def ends_of(segments: DataFrame) -> DataFrame:
    """Return how far each key's partitions are filled (variant, hint, taken), from all its segments."""
    return segments.groupBy(*KEY).agg(
        F.max(
            F.shiftleft(F.col("partition_id").cast("bigint"), _BITS) + F.col("first") + F.col("rows")
        ).alias("taken")
    )


def lacking(lookups: DataFrame, segments: DataFrame) -> DataFrame:
    """Return keys and days with more rows in ``lookups`` than the ``segments`` have places.

    ``lookups`` has variant, hint and date; ``lack`` is the number of missing places.
    """
    counted = lookups.groupBy(*KEY, "date").agg(F.count(F.lit(1)).alias("wanted"))
    reserved = segments.groupBy(*KEY, "date").agg(F.sum("rows").alias("reserved"))
    return (
        counted.join(reserved, [*KEY, "date"], "left")
        .withColumn("lack", F.col("wanted") - F.coalesce("reserved", F.lit(0)))
        .where("lack > 0")
        .select(*KEY, "date", "lack")
    )


def new_segments(lacking: DataFrame, ends: DataFrame, size: int) -> DataFrame:
    """Return segments for what is ``lacking``, after the ``ends`` of its keys.

    Days come in order of their date, partitions hold ``size`` rows, and a fuller partition stays as it is.
    Columns: ``variant, hint, partition_id, first, rows, date``.
    """
    in_order = Window.partitionBy(*KEY).orderBy("date")
    waiting = lacking.withColumn("before", F.sum("lack").over(in_order) - F.col("lack")).join(
        ends, list(KEY), "left"
    )
    start = _start(F.col("taken"), size) + F.col("before")
    end = start + F.col("lack")
    placed = waiting.select(
        *KEY,
        "date",
        start.alias("start"),
        end.alias("end"),
        F.explode(F.sequence(F.floor(start / size).cast("int"), F.floor((end - 1) / size).cast("int"))).alias(
            "partition_id"
        ),
    )
    first = F.greatest("start", F.col("partition_id") * F.lit(size).cast("bigint"))
    last = F.least("end", (F.col("partition_id") + 1) * F.lit(size).cast("bigint"))
    return placed.select(
        *KEY,
        "partition_id",
        (first - F.col("partition_id") * F.lit(size).cast("bigint")).alias("first"),
        (last - first).alias("rows"),
        "date",
    )


def _start(taken: Column, size: int) -> Column:
    """Return the place, counted over partitions of ``size``, at which the next row of a key goes."""
    partition, fill = F.shiftright(taken, _BITS), taken.bitwiseAND(F.lit((1 << _BITS) - 1))
    return F.when(taken.isNull(), F.lit(0)).otherwise(
        partition * size + F.least(fill, F.lit(size).cast("bigint"))
    )


def with_partition(lookups: DataFrame, segments: DataFrame, order: tuple[str, ...]) -> DataFrame:
    """Return ``lookups`` with ``partition_id``; rows of a key and day fill places in the order given."""
    by_day = Window.partitionBy(*KEY, "date")
    ranked = lookups.withColumn("rank", F.row_number().over(by_day.orderBy(*order)) - 1)
    # Ranks up to here are taken by earlier segments of the same key and day.
    so_far = by_day.orderBy("partition_id", "first").rowsBetween(Window.unboundedPreceding, -1)
    spans = segments.select(
        *KEY, "date", "partition_id", "rows", F.coalesce(F.sum("rows").over(so_far), F.lit(0)).alias("from")
    )
    inside = (F.col("rank") >= F.col("from")) & (F.col("rank") < F.col("from") + F.col("rows"))
    return ranked.join(spans, [*KEY, "date"]).where(inside).drop("rank", "from", "rows")
