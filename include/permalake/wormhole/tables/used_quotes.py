"""Quotes → ``token_prices``, and back."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.contracts.value_reasons import PRICE_LIMIT

_QUOTE = (*TOKEN_PRICES.key, "price_usd", "confidence", "date")


def is_price(price: Column) -> Column:
    """Return whether a quote is a price: above zero, below the limit of the absurd."""
    return (price > 0) & (price < PRICE_LIMIT)


def token_prices(quotes: DataFrame) -> DataFrame:
    """Return distinct quotes as rows of ``token_prices`` that were never corrected.

    ``quotes`` has its key, price_usd and confidence; without fetched_at the quotes are of now.
    """
    rows = quotes.withColumn("date", F.col("quote_time").cast("date"))
    if "fetched_at" not in rows.columns:
        rows = rows.select(*_QUOTE).distinct().withColumn("fetched_at", F.current_timestamp())
    return rows.withColumns(
        {
            "former_price_usd": F.lit(None).cast("decimal(38,18)"),
            "corrected_at": F.lit(None).cast("timestamp"),
        }
    ).select(*TOKEN_PRICES.names)


def stored_near(stored: DataFrame, wanted: DataFrame, provider: str, window_hours: float) -> DataFrame:
    """Return the valid quotes of a provider in ``token_prices`` that lie within reach of any wanted time."""
    reach = F.make_dt_interval(secs=F.lit(window_hours * 3600))
    spread = wanted.agg((F.min("at") - reach).alias("first"), (F.max("at") + reach).alias("last")).first()
    near = stored.where((F.col("provider") == provider) & is_price(F.col("price_usd")))
    if spread is None or spread["first"] is None:
        return near.limit(0)
    first, last = F.lit(spread["first"]), F.lit(spread["last"])
    return near.where(
        F.col("quote_time").between(first, last)
        & F.col("date").between(first.cast("date"), last.cast("date"))
    )


def corrections(used: DataFrame, stored: DataFrame) -> DataFrame:
    """Return the stored rows whose price is another one in ``used`` (rows of ``token_prices``), corrected."""
    former = stored.select(
        *TOKEN_PRICES.key, "date", "fetched_at", F.col("price_usd").alias("former_price_usd")
    )
    rows = used.drop("fetched_at", "former_price_usd").join(former, [*TOKEN_PRICES.key, "date"])
    differs = F.col("price_usd") != F.col("former_price_usd")
    return rows.where(differs).withColumn("corrected_at", F.current_timestamp()).select(*TOKEN_PRICES.names)
