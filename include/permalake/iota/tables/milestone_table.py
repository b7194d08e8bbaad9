"""Table ``milestones``, which needs a whole day: any of its messages may carry a milestone."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.iota.cone.decoded import Row, hexed, of_kind


def milestones(decoded: DataFrame) -> DataFrame:
    """Return ``milestones``.

    The message of a Stardust milestone is the first block of the same day that carries it.
    """
    carriers = (
        of_kind(decoded, Row.BLOCK)
        .where("milestone_id is not null")
        .groupBy("date", "milestone_id")
        .agg(F.expr("min_by(message_id, struct(milestone_index, white_flag_index))").alias("carrier"))
    )
    return (
        of_kind(decoded, Row.MILESTONE)
        .join(carriers, ["date", "milestone_id"], "left")
        .select(
            "milestone_index",
            F.lower(F.hex(F.coalesce("message_id", "carrier"))).alias("message_id"),
            "timestamp",
            F.col("raw").alias("payload"),
            hexed("milestone_id").alias("milestone_id"),
            "date",
        )
    )
