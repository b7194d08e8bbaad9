"""Tables with a row a day or distinct values of a day, from the staged tables of the same days.

Makes ``date_cache``, ``metrics_cache``, ``daily_analytics``, ``daily_extended`` and ``daily_activity``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.iota.cone.source_records import InclusionState
from permalake.iota.contracts.metrics import DAILY_ACTIVITY, MS_ACTIVITY
from permalake.iota.tables.transaction_activity import BUCKETS


def date_cache(milestones: DataFrame) -> DataFrame:
    """Return ``date_cache``: first and last milestone of a date."""
    return milestones.groupBy("date").agg(
        F.min("milestone_index").alias("start_ms"), F.max("milestone_index").alias("end_ms")
    )


def metrics_cache(address_analytics: DataFrame, tags: DataFrame) -> DataFrame:
    """Return ``metrics_cache``: distinct addresses by what they did, and distinct tags.

    Tags count whatever the inclusion state of their messages.
    """
    did = F.array(
        F.when(F.bool_or(F.col("sent_tokens") > 0), F.lit("sent")),
        F.when(F.bool_or(F.col("recv_tokens") > 0), F.lit("received")),
        F.lit("sent_or_received"),
    )
    per_address = address_analytics.groupBy("date", F.col("address").alias("value")).agg(did.alias("did"))
    addresses = per_address.select("date", "value", F.explode(F.array_compact("did")).alias("metric"))
    used = tags.select("date", F.col("tag").alias("value"), F.lit("used").alias("metric")).distinct()
    return (
        addresses.select("*", F.lit("address").alias("variant"))
        .unionByName(used.select("*", F.lit("index").alias("variant")))
        .select("date", "variant", "metric", "value", F.lit(None).cast("binary").alias("metric_value"))
    )


def daily_analytics(metrics_cache: DataFrame, date_cache: DataFrame) -> DataFrame:
    """Return ``daily_analytics``: a row for every day with milestones."""
    counted = metrics_cache.groupBy("date").agg(
        _count("sent_or_received").alias("total_addresses"),
        _count("sent").alias("send_addresses"),
        _count("received").alias("recv_addresses"),
    )
    return date_cache.join(counted, "date", "left").select(
        F.year("date").alias("year"),
        "date",
        *(_or_zero(name) for name in ("total_addresses", "send_addresses", "recv_addresses")),
    )


def daily_extended(
    messages: DataFrame, transactions: DataFrame, metrics_cache: DataFrame, ms_analytics: DataFrame
) -> DataFrame:
    """Return ``daily_extended``: a row for every day with milestones."""
    included, conflicting = int(InclusionState.INCLUDED), int(InclusionState.CONFLICTING)
    tangle = ms_analytics.groupBy("date").agg(
        F.sum("message_count").cast("int").alias("message_count"),
        F.sum("transaction_count").cast("int").alias("included_transaction_count"),
        F.sum("transferred_tokens").alias("transferred_tokens"),
    )
    conflicts = (
        messages.where(F.col("inclusion_state") == conflicting)
        .groupBy("date")
        .agg(F.count("*").cast("int").alias("conflicting_transaction_count"))
    )
    sizes = (
        transactions.where((F.col("variant") == "output") & (F.col("inclusion_state") == included))
        .groupBy("date", "transaction_id")
        .agg(F.count("*").alias("outputs"))
        .groupBy("date")
        .agg(F.avg("outputs").alias("avg_outputs"), F.max("outputs").cast("int").alias("max_outputs"))
    )
    tags = metrics_cache.groupBy("date").agg(_count("used").alias("used_tags"))
    joined = tangle.join(conflicts, "date", "left").join(sizes, "date", "left").join(tags, "date", "left")
    return joined.select(
        "date",
        "message_count",
        "included_transaction_count",
        _or_zero("conflicting_transaction_count"),
        "transferred_tokens",
        "avg_outputs",
        _or_zero("max_outputs"),
        _or_zero("used_tags"),
    )


def daily_activity(ms_activity: DataFrame, ms_analytics: DataFrame) -> DataFrame:
    """Return ``daily_activity``: a row for every day with milestones."""
    booked = ms_analytics.groupBy("date").agg(F.sum("transferred_tokens").alias("booked_tokens"))
    shared = [c for c in DAILY_ACTIVITY.columns if c.name in MS_ACTIVITY.names and c.name != "date"]
    return (
        ms_activity.groupBy("date")
        .agg(
            F.count("*").cast("int").alias("milestones"),
            F.max("message_bytes").alias("max_milestone_bytes"),
            *(_summed(column.name, column.type).alias(column.name) for column in shared),
        )
        .join(booked, "date")
        .select(*DAILY_ACTIVITY.names)
    )


def _summed(name: str, kind: str) -> Column:
    """Return the sum of a column; of lists by position."""
    if kind != "list<int>":
        return F.sum(name).cast(kind.replace("long", "bigint"))
    return F.array(
        *(F.coalesce(F.sum(F.get(name, F.lit(at))).cast("int"), F.lit(0)) for at in range(len(BUCKETS)))
    )


def _count(metric: str) -> Column:
    return F.count_if(F.col("metric") == metric).cast("int")


def _or_zero(name: str) -> Column:
    return F.coalesce(F.col(name), F.lit(0)).alias(name)
