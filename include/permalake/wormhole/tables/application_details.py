"""Transfers of applications and quotes → ``application_transfer_details``, ``applications_daily``.

What the token bridge moves has its value in ``token_transfer_details``; here it is only repeated, so that no
value is computed twice.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.exact_amounts import (
    DECIMALS,
    native_account,
    native_token,
    notional,
    scaled,
)

TOKEN = ("origin_chain", "origin_address")
_AS_HERE = {"origin_symbol": "token_symbol", "origin_name": "token_name"}
_VALUES = (
    *("amount", "notional_usd", "token_price_usd"),
    *("price_timestamp", "price_source", "price_distance_seconds"),
)
_BRIDGED, _OWN = "in_token_transfers = 1", "in_token_transfers = 0"


def own_transfers(transfers: DataFrame, publications: DataFrame) -> DataFrame:
    """Return the transfers with a token that the token bridge does not count, with the time of the VAA.

    Columns: row_key, date, ``at``, origin_chain, origin_address, ``raw``, amount_decimals.
    """
    own = transfers.where(f"{_OWN} AND token_address IS NOT NULL").select(
        "date",
        "row_key",
        F.col("token_chain").alias(TOKEN[0]),
        F.col("token_address").alias(TOKEN[1]),
        F.col("amount").alias("raw"),
        "amount_decimals",
    )
    return own.join(
        publications.select("date", "row_key", F.col("timestamp").alias("at")), ["date", "row_key"]
    )


def measured(own: DataFrame, metadata: DataFrame) -> DataFrame:
    """Add decimals, symbol, name and ``amount`` to the result of :func:`own_transfers`.

    Decimals that a message states go before the token's. ``amount`` is null without decimals, and where a
    message states more than 8, which NTT does not allow.
    """
    decimals = F.coalesce("amount_decimals", "decimals")
    stated = F.when(F.coalesce("amount_decimals", F.lit(0)) <= DECIMALS, F.col("raw"))
    return own.join(metadata, ["date", *TOKEN], "left").withColumn("amount", scaled(stated, decimals))


def application_transfer_details(
    transfers: DataFrame,
    own: DataFrame,
    priced: DataFrame,
    bridged: DataFrame,
    reference: Path | None,
) -> DataFrame:
    """Return the rows of ``application_transfer_details``, one per row of ``application_transfers``.

    ``own`` is the result of :func:`measured`, ``bridged`` rows of ``token_transfer_details``; ``priced``
    holds at most one quote per (origin_chain, origin_address, at).
    """
    distance = F.abs(F.unix_micros("quote_time") - F.unix_micros("at")) / 1_000_000
    quoted = own.join(priced, [*TOKEN, "at"], "left").select(
        "date",
        "row_key",
        "amount",
        notional(F.col("amount"), F.col("price_usd")).alias("notional_usd"),
        F.col("price_usd").alias("token_price_usd"),
        F.col("quote_time").alias("price_timestamp"),
        F.col("provider").alias("price_source"),
        F.floor(distance).alias("price_distance_seconds"),
        F.col("symbol").alias("token_symbol"),
        F.col("name").alias("token_name"),
    )
    values = (*_VALUES, *_AS_HERE.values())
    repeated = bridged.withColumnsRenamed(_AS_HERE).select("date", "row_key", *values)
    keys = transfers.where(_BRIDGED).select("date", "row_key")
    known = quoted.unionByName(repeated.join(keys, ["date", "row_key"], "left_semi"))
    return transfers.join(known.withColumnRenamed("amount", "units"), ["date", "row_key"], "left").select(
        "row_key",
        F.col("units").alias("amount"),
        *values[1:],
        native_token(F.col("token_chain"), F.col("token_address"), reference).alias("token_native_address"),
        native_account(F.col("target_chain"), F.col("recipient_address"), reference).alias(
            "recipient_native_address"
        ),
        "date",
    )


def applications_daily(
    messages: DataFrame, transfers: DataFrame, details: DataFrame, bridged: DataFrame
) -> DataFrame:
    """Return messages, transfers and their value per day, application and emitter chain.

    ``details`` are rows of ``application_transfer_details``, ``bridged`` of ``token_transfer_details``. A
    value counts where the contract is listed: anybody can send what its form alone tells.
    """
    own = details.join(transfers.where(_OWN).select("date", "row_key"), ["date", "row_key"], "left_semi")
    values = own.select("date", "row_key", "notional_usd").unionByName(
        bridged.select("date", "row_key", "notional_usd")
    )
    moved = messages.join(values.withColumn("moved", F.lit(1)), ["date", "row_key"], "left")
    return (
        moved.select("date", "app_id", _emitter_chain(), "is_listed", "moved", "notional_usd")
        .groupBy("date", "app_id", "emitter_chain")
        .agg(
            F.count("*").alias("messages"),
            F.count("moved").alias("transfers"),
            F.try_sum(F.when(F.col("is_listed") == 1, F.col("notional_usd"))).alias("notional_usd"),
        )
    )


def _emitter_chain() -> Column:
    return F.substring_index("row_key", ":", 1).cast("int").alias("emitter_chain")
