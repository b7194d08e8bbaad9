"""Laws of the daily tables: counts and sums of the day's messages and transfers."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import balance, by, entries, side, violations
from permalake.audit.scope import Scope
from permalake.wormhole.laws.transfer_sides import AT_ROUTE, ROUTE, in_words, routed
from permalake.wormhole.tables.exact_amounts import LIMB_NAMES, joined, limbs

_EMITTER_CHAIN = "concat('chain ', emitter_chain)"


def _receivers(scope: Scope) -> DataFrame:
    """Return a side of the number of distinct receivers per target chain."""
    known = scope("chain_details").select("date", "row_key", "receiver_address")
    rows = scope("token_transfer_payload").join(known, ["date", "row_key"], "left")
    counted = rows.groupBy("date", "target_chain").agg(
        F.count_distinct(F.coalesce("receiver_address", "target_address")).alias("n")
    )
    return entries(counted, "concat('chain ', target_chain)", "n")


def _wrong_sums(scope: Scope) -> DataFrame:
    """Return the routes whose amount or value is not the sum over their transfers."""
    sums = (
        routed(scope)
        .select(*ROUTE, "notional_usd", *limbs(F.col("amount")))
        .groupBy(*ROUTE)
        .agg(
            *(F.sum(limb).alias(limb) for limb in LIMB_NAMES),
            F.try_sum("notional_usd").alias("notional_expected"),
        )
        .withColumn("amount_expected", joined(*(F.col(limb) for limb in LIMB_NAMES)))
    )
    daily = scope("notional_transferred_daily").select(*ROUTE, "amount", "notional_usd")
    both = daily.join(sums, list(ROUTE))
    pairs = both.selectExpr(
        "date",
        f"stack(2, {AT_ROUTE} || ' amount', amount_expected, amount, {AT_ROUTE} || ' notional_usd', "
        "cast(notional_expected AS string), cast(notional_usd AS string)) AS (place, expected, found)",
    )
    return in_words(pairs.where("NOT expected <=> found"))


def _unexplained(scope: Scope) -> DataFrame:
    """Return the days that count more quarantined VAAs than the quarantine holds.

    The quarantine may hold more: also input that names no chain.
    """
    held = scope("quarantine").groupBy("date").agg(F.count("*").alias("held"))
    counted = scope("messages_daily").groupBy("date").agg(F.sum("quarantined").alias("counted"))
    rows = counted.join(held, "date", "left").selectExpr("date", "counted", "coalesce(held, 0) AS held")
    return rows.where("counted > held").selectExpr(
        "date", "'quarantined' AS place", "'at most ' || held AS expected", "counted AS found"
    )


LAWS = (
    balance(
        "verified_adds_up",
        "messages_daily",
        "verified is the number of messages of the chain.",
        expected=side("message_publication", _EMITTER_CHAIN),
        found=side("messages_daily", _EMITTER_CHAIN, "verified"),
    ),
    violations(
        "quarantined_is_in_quarantine",
        "messages_daily",
        "No more VAAs are counted as quarantined than quarantine holds.",
        _unexplained,
    ),
    balance(
        "transfers_add_up",
        "notional_transferred_daily",
        "transfers is the number of transfers of the route and token.",
        expected=by(routed, AT_ROUTE),
        found=side("notional_transferred_daily", AT_ROUTE, "transfers"),
    ),
    violations(
        "sums_add_up",
        "notional_transferred_daily",
        "amount and notional_usd are the sums of the transfers of the route and token.",
        _wrong_sums,
    ),
    balance(
        "receivers_add_up",
        "addresses_daily",
        "addresses is the number of distinct receivers on the chain.",
        expected=_receivers,
        found=side("addresses_daily", "concat('chain ', target_chain)", "addresses"),
    ),
)
