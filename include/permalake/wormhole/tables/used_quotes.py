"""Quotes in use → ``token_prices``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.nearest_quotes import TOKEN


def token_prices(priced: DataFrame) -> DataFrame:
    """Return the rows of ``token_prices``: the quotes in use."""
    quote = (*TOKEN, "provider", "quote_time", "price_usd")
    return (
        priced.select(*quote, F.col("quote_time").cast("date").alias("date"))
        .distinct()
        .withColumn("fetched_at", F.current_timestamp())
    )
