"""Judged VAAs → ``messages_daily``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.verified_vaas import PUBLISHED, SURPLUS


def messages_daily(vaas: DataFrame) -> DataFrame:
    """Per day and emitter chain: messages = verified (published) + quarantined (distinct bytes).

    Bytes that show no emitter count for the chain that their document claims; without such a claim they count
    nowhere, as the table has no row for them.
    """
    claimed = F.substring_index(F.col("claimed_id"), "/", 1).try_cast("int")
    chain = F.when(F.col("row_key").isNotNull(), F.col("emitter_chain")).when(
        claimed.between(0, 65535), claimed
    )
    is_published = F.col("outcome") == PUBLISHED
    return (
        vaas.where(F.col("outcome") != SURPLUS)
        .select("date", chain.alias("emitter_chain"), is_published.cast("long").alias("verified"))
        .where(F.col("emitter_chain").isNotNull())
        .groupBy("date", "emitter_chain")
        .agg(F.count("*").alias("messages"), F.sum("verified").alias("verified"))
        .withColumn("quarantined", F.col("messages") - F.col("verified"))
    )
