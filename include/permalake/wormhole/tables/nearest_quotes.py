"""Wanted prices and quotes → the quote nearest in time, and whether it counts."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from permalake.config import PricesSettings
from permalake.wormhole.contracts.value_reasons import LOW_CONFIDENCE, OUTLIER

TOKEN = ("origin_chain", "origin_address")
WANTED = (*TOKEN, "at")
_SIDES = ("before", "after")


def nearest(wanted: DataFrame, quotes: DataFrame, rules: PricesSettings) -> DataFrame:
    """Return for each wanted (origin_chain, origin_address, at) the nearest quote within the rules' window.

    Of two equally near the earlier; without one there is no row. ``quotes``: those of one provider. Columns:
    the wanted ones, price_usd, quote_time, provider, confidence; contradicting_price_usd: the price of the
    nearer one of the quotes before and after within the window, where the quote differs by more than
    ``max_factor`` from all there are; reason: why the quote does not count, null where it does.

    One pass in time order per token instead of a join by range, so that its cost is linear in quotes and
    wants.
    """
    moments = _moments(wanted, quotes)
    before = Window.partitionBy(*TOKEN).orderBy("time", F.col("wanted"))
    after = Window.partitionBy(*TOKEN).orderBy(F.col("time").desc(), F.col("wanted"))
    is_sound = F.coalesce(F.col("quote.confidence"), F.lit(1.0)) >= rules.min_confidence
    neighbour = F.when(is_sound, F.col("quote"))
    others = Window.unboundedPreceding, -1
    beside = moments.select(
        "*",
        F.last(neighbour, ignorenulls=True).over(before.rowsBetween(*others)).alias("before"),
        F.last(neighbour, ignorenulls=True).over(after.rowsBetween(*others)).alias("after"),
    )
    placed = F.when(~F.col("wanted"), F.struct("quote.*", "before", "after"))
    around = beside.select(
        *(*TOKEN, "time", "wanted"),
        F.last(placed, ignorenulls=True).over(before).alias("earlier"),
        F.last(placed, ignorenulls=True).over(after).alias("later"),
    ).where("wanted")
    reach = F.lit(round(rules.window_hours * 3_600_000_000))
    to_earlier = _apart("time", "earlier.quote_time")
    to_later = _apart("time", "later.quote_time")
    chosen = F.when(to_earlier <= F.coalesce(to_later, to_earlier), F.col("earlier")).otherwise(
        F.col("later")
    )
    near = around.select(*TOKEN, "time", F.least(to_earlier, to_later).alias("off"), chosen.alias("q"))
    within = (
        F.when(_apart("time", f"q.{side}.quote_time") <= reach, F.col(f"q.{side}")).alias(side)
        for side in _SIDES
    )
    return (
        near.where(F.col("off") <= reach)
        .select(
            *(*TOKEN, F.col("time").alias("at")),
            *("q.price_usd", "q.quote_time", "q.provider", "q.confidence"),
            *within,
        )
        .withColumn("contradicting_price_usd", _contradicting(rules))
        .withColumn("reason", _reason(rules))
        .drop(*_SIDES)
    )


def compared(quotes: DataFrame, checking: DataFrame, rules: PricesSettings) -> DataFrame:
    """Return the quotes of wants as :func:`nearest` has them, also compared with those of a cross-check."""
    others = checking.where("reason IS NULL").select(*WANTED, F.col("price_usd").alias("check_usd"))
    by_check = F.when(_differs(F.col("price_usd"), F.col("check_usd"), rules), F.col("check_usd"))
    contradicting = F.coalesce(F.col("contradicting_price_usd"), by_check)
    return (
        quotes.join(others, list(WANTED), "left")
        .withColumn("contradicting_price_usd", contradicting)
        .withColumn("reason", _reason(rules))
        .drop("check_usd")
    )


def quoted(wanted: DataFrame, quotes: DataFrame, lacks: DataFrame) -> DataFrame:
    """Return a row per want: its quote as far as it counts, else the reason and the unused price.

    ``quotes`` as of :func:`nearest`; ``lacks``: why tokens have no quote at all (origin_chain,
    origin_address, lack).
    """
    counts = F.col("reason").isNull() & F.col("price_usd").isNotNull()
    named = ("price_usd", "quote_time", "provider")
    rows = wanted.join(quotes, list(WANTED), "left").join(F.broadcast(lacks), list(TOKEN), "left")
    return rows.select(
        *WANTED,
        *(F.when(counts, F.col(name)).alias(name) for name in named),
        F.when(~counts, F.col("price_usd")).alias("unused_price_usd"),
        *("confidence", "contradicting_price_usd"),
        F.when(~counts, F.coalesce("reason", "lack")).alias("reason"),
    )


def _contradicting(rules: PricesSettings) -> Column:
    before, after = (F.col(f"{side}.price_usd") for side in _SIDES)
    to_before, to_after = (_apart("quote_time", f"{side}.quote_time") for side in _SIDES)
    differs = [side.isNull() | _differs(F.col("price_usd"), side, rules) for side in (before, after)]
    nearer = F.when(to_before <= F.coalesce(to_after, to_before), before).otherwise(after)
    return F.when(differs[0] & differs[1], nearer)


def _differs(price: Column, other: Column, rules: PricesSettings) -> Column:
    low, high = F.least(price, other).cast("double"), F.greatest(price, other).cast("double")
    return price.isNotNull() & other.isNotNull() & (high > low * rules.max_factor)


def _reason(rules: PricesSettings) -> Column:
    """Return why a quote with ``confidence`` and ``contradicting_price_usd`` does not count; else null."""
    is_excluded = F.lit(rules.exclude_outliers) & F.col("contradicting_price_usd").isNotNull()
    return F.when(F.col("confidence") < rules.min_confidence, LOW_CONFIDENCE).when(is_excluded, OUTLIER)


def _moments(wanted: DataFrame, quotes: DataFrame) -> DataFrame:
    quote = F.struct("quote_time", "price_usd", "provider", "confidence")
    of_quotes = quotes.select(
        *TOKEN, F.col("quote_time").alias("time"), F.lit(False).alias("wanted"), quote.alias("quote")
    )
    of_wanted = wanted.select(*WANTED).distinct()
    empty = F.lit(None).cast(of_quotes.schema["quote"].dataType)
    return of_quotes.unionByName(
        of_wanted.select(*TOKEN, F.col("at").alias("time"), F.lit(True).alias("wanted"), empty.alias("quote"))
    )


def _apart(moment: str, other: str) -> Column:
    return F.abs(F.unix_micros(moment) - F.unix_micros(other))
