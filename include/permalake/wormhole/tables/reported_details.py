"""Senders that the source's API reports → rows of ``chain_answers``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REPORTED = "reported_sender"


def reported_senders(reported: DataFrame) -> DataFrame:
    """Return rows of ``chain_answers`` from (row_key, date, sender).

    ``sender`` is ``sourceChain.from`` of an operation, in the chain's own form; rows without one are left
    out. An answer of the chain's RPC has precedence.
    """
    senders = reported.where(F.trim("sender") != "").groupBy("row_key", "date")
    unknown = F.lit(None).cast("string")
    return senders.agg(F.min(F.trim("sender")).alias("address")).select(
        F.substring_index("row_key", ":", 1).cast("int").alias("chain"),
        F.lit(REPORTED).alias("question"),
        F.col("row_key").alias("subject"),
        F.lit(1).alias("told"),
        "address",
        unknown.alias("symbol"),
        unknown.alias("name"),
        unknown.cast("int").alias("decimals"),
        unknown.alias("reason"),
        F.current_timestamp().alias("asked_at"),
        "date",
    )
