"""Token transfers with metadata and quotes → ``token_transfer_details``, ``token_prices``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.chain_questions import NATIVE
from permalake.wormhole.tables.exact_amounts import native_token, notional, scaled

TOKEN = ("origin_chain", "origin_address")
_WANTED = [*TOKEN, "at"]
_PRICE = "decimal(38,18)"
_CHECK = {
    "check_price_usd": _PRICE,
    "check_price_timestamp": "timestamp",
    "check_price_source": "string",
}
_STAND_IN = {"stand_in": "string", "stand_in_price_usd": _PRICE, "stand_in_timestamp": "timestamp"}


def identified(transfers: DataFrame, publications: DataFrame, metadata: DataFrame) -> DataFrame:
    """Join the range's transfers with their publications and their tokens' metadata.

    Columns: row_key, date, ``at`` (time of the VAA), emitter_chain, target_chain, target_address,
    origin_chain, origin_address, decimals, symbol, name, ``amount`` (null where the decimals are unknown).
    """
    times = publications.select("date", "row_key", "emitter_chain", F.col("timestamp").alias("at"))
    routes = transfers.select(
        "date", "row_key", "target_chain", "target_address", *TOKEN, F.col("amount").alias("raw")
    )
    return (
        routes.join(times, ["date", "row_key"])
        .join(metadata, ["date", *TOKEN], "left")
        .withColumn("amount", scaled(F.col("raw"), F.col("decimals")))
    )


def named(known: DataFrame, answers: DataFrame, reference: Path | None) -> DataFrame:
    """Add ``native_token``: a token in native form, by its address or by the registry of its chain's bridge.

    ``answers`` are rows of ``chain_answers`` that hold an answer.
    """
    names = answers.where(F.col("question") == NATIVE).select(
        F.col("chain").alias(TOKEN[0]), F.col("subject").alias(TOKEN[1]), F.col("address").alias("registered")
    )
    told = native_token(F.col(TOKEN[0]), F.col(TOKEN[1]), reference)
    named = known.join(F.broadcast(names), list(TOKEN), "left")
    return named.withColumn("native_token", F.coalesce(told, F.col("registered"))).drop("registered")


def token_transfer_details(
    known: DataFrame, priced: DataFrame, checked: DataFrame | None, stand_ins: DataFrame | None
) -> DataFrame:
    """Return the rows of ``token_transfer_details``.

    ``known`` is the result of :func:`identified` and :func:`named`. ``priced`` holds at most one quote per
    (origin_chain, origin_address, at); so do ``checked``, the quotes of the provider that cross-checks, and
    ``stand_ins``, with the columns stand_in, stand_in_price_usd and stand_in_timestamp; None: there are none.
    """
    check = None if checked is None else checked.toDF(*_WANTED, *_CHECK)
    quoted = known.join(priced, _WANTED, "left")
    quoted = _beside(_beside(quoted, check, _CHECK), stand_ins, _STAND_IN)
    distance = F.abs(F.unix_micros("quote_time") - F.unix_micros("at")) / 1_000_000
    return quoted.select(
        "row_key",
        "amount",
        notional(F.col("amount"), F.col("price_usd")).alias("notional_usd"),
        F.col("price_usd").alias("token_price_usd"),
        F.col("quote_time").alias("price_timestamp"),
        F.col("provider").alias("price_source"),
        F.floor(distance).alias("price_distance_seconds"),
        "check_price_usd",
        "check_price_timestamp",
        "check_price_source",
        "stand_in",
        "stand_in_price_usd",
        "stand_in_timestamp",
        notional(F.col("amount"), F.col("stand_in_price_usd")).alias("stand_in_notional_usd"),
        F.col("symbol").alias("origin_symbol"),
        F.col("name").alias("origin_name"),
        F.col("native_token").alias("origin_token_address"),
        "date",
    )


def _beside(known: DataFrame, frame: DataFrame | None, columns: Mapping[str, str]) -> DataFrame:
    """Return the transfers with the columns of ``frame``, by name and Spark type; null without a frame."""
    if frame is not None:
        return known.join(frame, _WANTED, "left")
    return known.withColumns({name: F.lit(None).cast(kind) for name, kind in columns.items()})


def token_prices(priced: DataFrame) -> DataFrame:
    """Return the rows of ``token_prices``: the quotes in use."""
    quote = (*TOKEN, "provider", "quote_time", "price_usd")
    return (
        priced.select(*quote, F.col("quote_time").cast("date").alias("date"))
        .distinct()
        .withColumn("fetched_at", F.current_timestamp())
    )
