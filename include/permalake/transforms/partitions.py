"""Which partition of a look-up table a row lives in: the earliest that was not full when it came.

A *segment* says that rows of one key and day fill ``rows`` places of partition ``partition_id`` from place
``first`` on. Segments are only ever added, so a row keeps its place as long as its rank among the rows of its
key and day is the same.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

KEY = ("variant", "hint")
MAX_PARTITION = 32767
"""``partition_id`` is a smallint."""


def place(
    lookups: DataFrame, known: DataFrame, size: int, order: tuple[str, ...]
) -> tuple[DataFrame, DataFrame]:
    """Look-up rows with their ``partition_id``, and the segments to be recorded for them.

    ``lookups`` holds ``variant``, ``hint``, ``date``, ``milestone_index`` and the columns of ``order``, in
    which rows of a key and day take their places; ``known`` are the segments recorded so far.
    """
    mine = known.join(lookups.select(*KEY).distinct(), list(KEY), "left_semi")
    added = new_segments(lookups, mine, size)
    placed = with_partition(lookups, mine.select(*added.columns).unionByName(added), order)
    newest = placed.groupBy(*KEY, "date", "partition_id").agg(F.max("milestone_index").alias("newest"))
    return placed, added.join(newest, [*KEY, "date", "partition_id"])


def new_segments(lookups: DataFrame, known: DataFrame, size: int) -> DataFrame:
    """Segments that the rows of ``lookups`` (``variant``, ``hint``, ``date``) need beyond those ``known`` to
    the lake; days in order of their date, partitions of ``size`` rows, a partition that is fuller left alone.

    Columns ``variant, hint, partition_id, first, rows, date``.
    """
    counted = lookups.groupBy(*KEY, "date").agg(F.count(F.lit(1)).alias("wanted"))
    reserved = known.groupBy(*KEY, "date").agg(F.sum("rows").alias("reserved"))
    ends = known.groupBy(*KEY).agg(
        F.max(F.struct("partition_id", (F.col("first") + F.col("rows")).alias("fill"))).alias("last")
    )
    in_order = Window.partitionBy(*KEY).orderBy("date")
    lacking = (
        counted.join(reserved, [*KEY, "date"], "left")
        .withColumn("lack", F.col("wanted") - F.coalesce("reserved", F.lit(0)))
        .where("lack > 0")
        .withColumn("before", F.sum("lack").over(in_order) - F.col("lack"))
        .join(ends, list(KEY), "left")
    )
    start = _start(F.col("last"), size) + F.col("before")
    end = start + F.col("lack")
    placed = lacking.select(
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


def _start(last: Column, size: int) -> Column:
    """Place, counted over partitions of ``size``, at which the next row of a key goes."""
    partition, fill = last["partition_id"].cast("bigint"), last["fill"]
    return F.when(last.isNull(), F.lit(0)).otherwise(
        partition * size + F.least(fill, F.lit(size).cast("bigint"))
    )


def with_partition(lookups: DataFrame, segments: DataFrame, order: tuple[str, ...]) -> DataFrame:
    """``lookups`` with ``partition_id``; rows of a key and day take their places in the order given."""
    by_day = Window.partitionBy(*KEY, "date")
    ranked = lookups.withColumn("rank", F.row_number().over(by_day.orderBy(*order)) - 1)
    # Ranks up to here are taken by earlier segments of the same key and day.
    so_far = by_day.orderBy("partition_id", "first").rowsBetween(Window.unboundedPreceding, -1)
    spans = segments.select(
        *KEY, "date", "partition_id", "rows", F.coalesce(F.sum("rows").over(so_far), F.lit(0)).alias("from")
    )
    inside = (F.col("rank") >= F.col("from")) & (F.col("rank") < F.col("from") + F.col("rows"))
    return ranked.join(spans, [*KEY, "date"]).where(inside).drop("rank", "from", "rows")
