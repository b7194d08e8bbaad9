"""Transfers → the tokens whose decimals and prices are wanted."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.nearest_quotes import TOKEN, WANTED

_OWN = "in_token_transfers = 0 AND token_address IS NOT NULL"


def own_transfers(transfers: DataFrame) -> DataFrame:
    """Return the transfers of applications with a token that the token bridge does not count.

    Columns: date, row_key, origin_chain, origin_address, amount_decimals.
    """
    return transfers.where(_OWN).select(
        "date",
        "row_key",
        F.col("token_chain").alias(TOKEN[0]),
        F.col("token_address").alias(TOKEN[1]),
        "amount_decimals",
    )


def wanted_prices(bridged: DataFrame, own: DataFrame, publications: DataFrame) -> DataFrame:
    """Return the distinct (origin_chain, origin_address, at) of transfers; ``at`` is the time of the VAA."""
    times = publications.select("date", "row_key", F.col("timestamp").alias("at"))
    key = ("date", "row_key")
    sent = bridged.select(*key, *TOKEN).unionByName(own.select(*key, *TOKEN))
    return sent.join(times, list(key)).select(*WANTED).distinct()
