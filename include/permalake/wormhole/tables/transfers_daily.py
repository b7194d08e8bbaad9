"""Transfers and their details → ``notional_transferred_daily`` and ``addresses_daily``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.exact_amounts import LIMB_NAMES, joined, limbs

ROUTE = ("date", "emitter_chain", "target_chain", "origin_chain", "origin_address")


def notional_transferred_daily(known: DataFrame, details: DataFrame) -> DataFrame:
    """Return transfers, exact sum of amounts and sum of notional values per day, route and token.

    The sum of notional values is null where nothing has one, and beyond decimal(38,8).
    """
    values = details.select("date", "row_key", "notional_usd")
    rows = known.join(values, ["date", "row_key"]).select(
        *ROUTE, "symbol", "notional_usd", *limbs(F.col("amount"))
    )
    sums = rows.groupBy(*ROUTE).agg(
        F.max("symbol").alias("symbol"),
        F.count("*").alias("transfers"),
        *(F.sum(limb).alias(limb) for limb in LIMB_NAMES),
        F.try_sum("notional_usd").alias("notional_usd"),
    )
    amount = joined(*(F.col(limb) for limb in LIMB_NAMES)).alias("amount")
    return sums.select(*ROUTE, "symbol", "transfers", amount, "notional_usd")


def addresses_daily(known: DataFrame, chain_details: DataFrame) -> DataFrame:
    """Count distinct receivers of token transfers per day and target chain.

    Token accounts of one owner are one receiver where the owner is known.
    """
    receivers = chain_details.select("date", "row_key", "receiver_address")
    address = F.coalesce("receiver_address", "target_address")
    return (
        known.join(receivers, ["date", "row_key"], "left")
        .groupBy("date", "target_chain")
        .agg(F.count_distinct(address).alias("addresses"))
    )
