"""Documents that came in after days were built → the days that they change."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.contracts.quarantine import RAW_LIMIT
from permalake.wormhole.codec.vaa import GENESIS
from permalake.wormhole.tables.documents import body_of, dated, identified, signature_count

_MANY_DAYS = 1000


def late_days(documents: DataFrame, table: Callable[[str], DataFrame]) -> list[dt.date]:
    """Return the days whose published rows these documents may change, in order.

    Those of VAAs that are neither published with the same body and as many signatures nor in quarantine with
    the same bytes; and those of messages without a real time that were published before a document had it.

    ``table`` gives published tables by name. Cost grows with the documents and the days they belong to.
    """
    weighed = dated(documents).select("*", *_weight(F.col("raw"))).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        days = [row["date"] for row in weighed.select("date").distinct().collect()]
        if not days:
            return []
        here = (
            F.col("date").isin(days)
            if len(days) <= _MANY_DAYS
            else F.col("date").between(min(days), max(days))
        )
        published = _known(table("quorum_state").where(here)).alias("known")
        same = (
            (F.col("news.date") == F.col("known.date"))
            & (F.col("news.identity") == F.col("known.identity"))
            & (F.col("news.body") == F.col("known.body"))
            & (F.col("news.signatures") <= F.col("known.signatures"))
        )
        refused = table("quarantine").where(here).select("date", _head().alias("head"))
        news = (
            weighed.withColumn("head", _head())
            .alias("news")
            .join(published, same, "left_anti")
            .join(refused, ["date", "head"], "left_anti")
        )
        changed = news.select("date").union(_moved(weighed, table("message_publication"))).distinct()
        return sorted(row["date"] for row in changed.collect())
    finally:
        weighed.unpersist()


def _head() -> Column:
    """Return what the quarantine keeps of ``raw``."""
    return F.substring("raw", 1, RAW_LIMIT)


def _weight(raw: Column) -> list[Column]:
    """Body and number of signatures of readable bytes."""
    readable = F.col("identity").isNotNull()
    return [
        F.when(readable, body_of(raw)).alias("body"),
        F.when(readable, signature_count(raw)).alias("signatures"),
    ]


def _known(quorum_state: DataFrame) -> DataFrame:
    rows = quorum_state.select(
        "date", F.col("signed_vaa").alias("raw"), F.lit(None).cast("string").alias("fault")
    )
    return identified(rows).select("date", "identity", *_weight(F.col("raw")))


def _moved(weighed: DataFrame, publication: DataFrame) -> DataFrame:
    """Days under which messages without a real time are published that these documents date otherwise."""
    undated = weighed.where(F.col("body_date") < F.lit(GENESIS)).select(
        "identity", F.col("date").alias("told")
    )
    old = publication.where(F.col("timestamp") < F.lit(GENESIS).cast("timestamp")).select(
        F.concat_ws("/", "emitter_chain", "emitter_address", F.col("sequence").cast("string")).alias(
            "identity"
        ),
        "date",
    )
    return old.join(undated, "identity").where(F.col("told") < F.col("date")).select("date")
