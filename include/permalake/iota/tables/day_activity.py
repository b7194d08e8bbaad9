"""A day's activity: over its hours, by reason and interval, and its most active addresses and tags."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from permalake.iota.codec.reasons import MEANINGS
from permalake.iota.cone.decoded import Row, of_kind
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.contracts.activity import ADDRESS_METRICS, PAYLOADS, TAG_METRICS, TOP

_COUNTS = {
    "no_payload": "no_payload_count",
    "tagged_data": "tagged_data_count",
    "transaction": "transaction_payload_count",
    "milestone": "milestone_payload_count",
    "treasury_transaction": "treasury_transaction_count",
}
_BEFORE_DELIMITER = r"^[^:;,/|_.#@+=~\-\s]+"


def hourly_activity(milestones: DataFrame, ms_activity: DataFrame, ms_analytics: DataFrame) -> DataFrame:
    """Return ``hourly_activity``: the figures of milestones, by hour."""
    of_milestone = ["date", "milestone_index"]
    booked = ms_analytics.select(*of_milestone, F.col("transferred_tokens").alias("booked_tokens"))
    times = milestones.select(*of_milestone, "timestamp")
    milestone_figures = times.join(ms_activity, of_milestone).join(booked, of_milestone)
    other = [f"{kind}_bytes" for kind in PAYLOADS[1:]]
    figures = ("messages", "message_bytes", "included_transactions", "conflicting_transactions")
    sums = (*figures, "transferred_tokens", "moved_tokens")

    def of(payload: str) -> str:
        size = f"{payload}_bytes" if payload in PAYLOADS[1:] else f"message_bytes - {' - '.join(other)}"
        own = ("confirmed_count", "conflicting_count", "booked_tokens", "moved_tokens")
        moved = own if payload == "transaction" else ("0L", "0L", "0L", "0L")
        return ", ".join(
            (f"'{payload}'", f"bigint({_COUNTS[payload]})", size, *map("bigint({})".format, moved))
        )

    names = ", ".join(("payload", *sums))
    stacked = f"stack({len(PAYLOADS)}, {', '.join(map(of, PAYLOADS))}) AS ({names})"
    return (
        milestone_figures.selectExpr("date", "int(timestamp % 86400 div 3600) AS hour", stacked)
        .groupBy("date", "hour", "payload")
        .agg(*(F.sum(name).alias(name) for name in sums))
        .where("messages > 0")
    )


def conflicts_daily(decoded: DataFrame) -> DataFrame:
    """Return ``conflicts_daily``."""
    meaning = F.coalesce(
        *(F.when(F.col("conflict_reason") == int(code), text) for code, text in MEANINGS.items() if code),
        F.lit("unknown"),
    )
    return (
        of_kind(decoded, Row.BLOCK)
        .where(F.col("inclusion_state") == int(InclusionState.CONFLICTING))
        .groupBy("date", "conflict_reason")
        .agg(F.count("*").alias("messages"))
        .select("*", meaning.alias("meaning"))
    )


def milestone_intervals(milestones: DataFrame) -> DataFrame:
    """Return ``milestone_intervals``: of the milestones that another of their day precedes."""
    before = F.lag("timestamp").over(Window.partitionBy("date").orderBy("milestone_index"))
    return (
        milestones.select("date", (F.col("timestamp") - before).alias("seconds"))
        .where("seconds IS NOT NULL")
        .groupBy("date", "seconds")
        .agg(F.count("*").alias("milestones"))
    )


def top_addresses(ledger_updates: DataFrame) -> DataFrame:
    """Return ``top_addresses``: by what included transactions created for them and they consumed."""
    by_address = ledger_updates.where("transaction_id IS NOT NULL").groupBy("date", "address")
    sides = (F.col("is_spent") == 0, F.col("is_spent") == 1)
    amounts = (F.sum(F.when(side, F.col("amount"))) for side in sides)
    counts = (F.count_if(side) for side in sides)
    sums = by_address.agg(
        *(one.alias(name) for one, name in zip((*amounts, *counts), ADDRESS_METRICS, strict=True))
    )
    return _ranked(sums, ADDRESS_METRICS, "address")


def per_tag(decoded: DataFrame) -> DataFrame:
    """Return messages, included transactions and their outputs' tokens by date and tag."""
    is_included = F.col("inclusion_state") == int(InclusionState.INCLUDED)
    tagged = of_kind(decoded, Row.BLOCK).where("tag is not null")
    amount = F.aggregate("outputs", F.lit(0).cast("long"), lambda total, output: total + output["amount"])
    return (
        tagged.select(
            "date",
            "tag",
            is_included.alias("is_included"),
            F.when(is_included, amount).alias("tokens"),
        )
        .groupBy("date", "tag")
        .agg(
            F.count("*").alias("messages"),
            F.count_if("is_included").alias("included_transactions"),
            F.coalesce(F.sum("tokens"), F.lit(0)).alias("transferred_tokens"),
        )
        .select("*", _text().alias("text"))
    )


def top_tags(per_tag: DataFrame) -> DataFrame:
    """Return ``top_tags``."""
    return _ranked(per_tag, TAG_METRICS, "tag", "text")


def tag_families(per_tag: DataFrame) -> DataFrame:
    """Return ``tag_families``."""
    family = F.regexp_extract(F.coalesce("text", F.lit("")), _BEFORE_DELIMITER, 0)
    sums = ("messages", "included_transactions", "transferred_tokens")
    return per_tag.groupBy("date", family.alias("family")).agg(
        F.count("*").alias("tags"), *(F.sum(name).alias(name) for name in sums)
    )


def _text() -> Column:
    """Return the text of ``tag``; null where its bytes are no UTF-8 or hold control characters."""
    text = F.unhex("tag").cast("string")
    is_printable = F.is_valid_utf8(text) & ~text.rlike(r"\p{Cntrl}")
    return F.when(is_printable, text)


def _ranked(sums: DataFrame, metrics: Sequence[str], key: str, *others: str) -> DataFrame:
    """Return the greatest values of each metric with their rank."""
    pairs = ", ".join(f"'{name}', bigint({name})" for name in metrics)
    values = sums.selectExpr("date", key, *others, f"stack({len(metrics)}, {pairs}) AS (metric, value)")
    order = Window.partitionBy("date", "metric").orderBy(F.desc("value"), key)
    return (
        values.where("value > 0")
        .select("*", F.row_number().over(order).alias("rank"))
        .where(f"rank <= {TOP}")
    )
