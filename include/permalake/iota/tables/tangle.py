"""Tables of the Tangle: milestones, messages, parents, tags, transactions; all from decoded rows."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.iota.cone.decoded import Row, hexed, milestone_time, of_kind, range_id


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


def protocol_parameters(decoded: DataFrame) -> DataFrame:
    """Return ``protocol_parameters``: what milestones announce."""
    return (
        of_kind(decoded, Row.MILESTONE)
        .where("parameters is not null")
        .select(
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            F.col("parameters.target_index").alias("target_milestone_index"),
            F.col("parameters.version").alias("protocol_version"),
            F.col("parameters.parameters").alias("params"),
            "date",
        )
    )


def messages(decoded: DataFrame) -> DataFrame:
    """Return ``messages``, in white-flag order within each milestone."""
    return of_kind(decoded, Row.BLOCK).select(
        hexed("message_id").alias("message_id"),
        "version",
        F.col("raw").alias("message"),
        "milestone_index",
        "white_flag_index",
        "inclusion_state",
        "conflict_reason",
        F.lit(None).cast("binary").alias("proof"),
        "date",
    )


def parents(decoded: DataFrame) -> DataFrame:
    """Return ``parents``: one row per distinct (parent, message)."""
    return (
        of_kind(decoded, Row.BLOCK)
        .select(
            F.explode(F.array_distinct("parents")).alias("parent"),
            hexed("message_id").alias("message_id"),
            "milestone_index",
            "inclusion_state",
            "date",
        )
        .select(
            hexed("parent").alias("parent_id"), "message_id", "milestone_index", "inclusion_state", "date"
        )
    )


def tags(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``tags``: indexation keys and tags, at top level or inside a transaction."""
    return (
        of_kind(decoded, Row.BLOCK)
        .where("tag is not null")
        .select(
            "tag",
            range_id(chunk_size).alias("ms_range_id"),
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            hexed("message_id").alias("message_id"),
            "inclusion_state",
            "date",
        )
    )


def transactions(decoded: DataFrame) -> DataFrame:
    """Return ``transactions``: inputs, outputs and unlocks of every transaction, conflicting ones too."""
    return (
        of_kind(decoded, Row.BLOCK)
        .where("transaction_id is not null")
        .select(
            F.explode(F.concat(*(_elements(variant) for variant in ("input", "output", "unlock")))).alias(
                "part"
            ),
            hexed("transaction_id").alias("transaction_id"),
            hexed("message_id").alias("message_id"),
            "inclusion_state",
            "milestone_index",
            "date",
        )
        .select(
            "transaction_id",
            "part.idx",
            "part.variant",
            "message_id",
            "part.data",
            "inclusion_state",
            "milestone_index",
            "date",
        )
    )


def _elements(variant: str) -> Column:
    """Return a transaction's list as (variant, idx, data), with the bytes cut out of the message."""

    def element(part: Column, idx: Column) -> Column:
        data = F.substring("raw", part["start"] + 1, part["length"])
        return F.struct(F.lit(variant).alias("variant"), idx.alias("idx"), data.alias("data"))

    return F.transform(f"{variant}s", element)
