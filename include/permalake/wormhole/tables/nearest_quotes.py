"""Wanted prices and quotes → the quote nearest in time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

TOKEN = ("origin_chain", "origin_address")
WANTED = (*TOKEN, "at")


def nearest(wanted: DataFrame, quotes: DataFrame, window_hours: float) -> DataFrame:
    """Return for each wanted (origin_chain, origin_address, at) the nearest quote within ``window_hours``.

    Of two equally near the earlier; without one there is no row. Columns: the wanted ones, price_usd,
    quote_time, provider.

    One pass in time order per token instead of a join by range, so that its cost is linear in quotes and
    wants.
    """
    moments = _moments(wanted, quotes)
    before = Window.partitionBy(*TOKEN).orderBy("time", F.col("wanted"))
    after = Window.partitionBy(*TOKEN).orderBy(F.col("time").desc(), F.col("wanted"))
    around = moments.select(
        "*",
        F.last("quote", ignorenulls=True).over(before).alias("earlier"),
        F.last("quote", ignorenulls=True).over(after).alias("later"),
    ).where("wanted")
    reach = F.lit(round(window_hours * 3_600_000_000))
    to_earlier = _distance(F.col("earlier.quote_time"))
    to_later = _distance(F.col("later.quote_time"))
    chosen = F.when(to_earlier <= F.coalesce(to_later, to_earlier), F.col("earlier")).otherwise(
        F.col("later")
    )
    return (
        around.select(
            *TOKEN, F.col("time").alias("at"), F.least(to_earlier, to_later).alias("off"), chosen.alias("q")
        )
        .where(F.col("off") <= reach)
        .select(*WANTED, "q.price_usd", "q.quote_time", "q.provider")
    )


def _moments(wanted: DataFrame, quotes: DataFrame) -> DataFrame:
    quote = F.struct("quote_time", "price_usd", "provider")
    of_quotes = quotes.select(
        *TOKEN, F.col("quote_time").alias("time"), F.lit(False).alias("wanted"), quote.alias("quote")
    )
    of_wanted = wanted.select(*WANTED).distinct()
    empty = F.lit(None).cast(of_quotes.schema["quote"].dataType)
    return of_quotes.unionByName(
        of_wanted.select(*TOKEN, F.col("at").alias("time"), F.lit(True).alias("wanted"), empty.alias("quote"))
    )


def _distance(quote_time: Column) -> Column:
    return F.abs(F.unix_micros("time") - F.unix_micros(quote_time))
