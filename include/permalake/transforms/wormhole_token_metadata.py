"""Attestations and token list → what a token was on a day: decimals, symbol, name."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

TOKEN = ("origin_chain", "origin_address")
_RECORD = ("decimals", "symbol", "name")


def token_metadata(wanted: DataFrame, attested: DataFrame, listed: DataFrame) -> DataFrame:
    """(date, origin_chain, origin_address, decimals, symbol, name) for each wanted (date, token) that is
    known.

    All three values come from one record: the latest attestation up to and including the day, else the
    token list. ``attested`` is the result of :func:`attestations`; ``listed`` has chain, token_address,
    decimals, symbol, name.
    """
    days = wanted.select("date", *TOKEN).distinct()
    told = (
        days.join(attested.withColumnRenamed("date", "attested_on"), [*TOKEN])
        .where(F.col("attested_on") <= F.col("date"))
        .groupBy("date", *TOKEN)
        .agg(F.max_by(F.struct(*_RECORD), F.struct("attested_on", "timestamp", "row_key")).alias("attested"))
    )
    entry = listed.select(
        F.col("chain").alias("origin_chain"),
        F.col("token_address").alias("origin_address"),
        F.struct(*_RECORD).alias("listed"),
    )
    return (
        days.join(told, ["date", *TOKEN], "left")
        .join(F.broadcast(entry), [*TOKEN], "left")
        .select("date", *TOKEN, F.coalesce("attested", "listed").alias("record"))
        .where(F.col("record").isNotNull())
        .select("date", *TOKEN, "record.*")
    )


def attestations(
    wanted: DataFrame, metas: DataFrame, publications: DataFrame, start: dt.date, end: dt.date
) -> DataFrame:
    """Attestations of the wanted tokens that may count on the days ``start..end``: those of these days, and
    of the days before the latest per token. Only the bridge of the token's own chain may speak for it.

    ``metas`` and ``publications`` are the whole tables ``asset_meta_payload`` and ``message_publication``.
    """
    own = metas.select(
        F.col("token_chain").alias("origin_chain"),
        F.col("token_address").alias("origin_address"),
        "row_key",
        "date",
        *_RECORD,
    ).where(
        (F.col("date") <= F.lit(end))
        & (F.substring_index("row_key", ":", 1).cast("int") == F.col("origin_chain"))
    )
    earlier = F.when(F.col("date") < F.lit(start), F.col("date"))
    of_token = Window.partitionBy(*TOKEN)
    counting = (
        own.join(F.broadcast(wanted.select(*TOKEN).distinct()), [*TOKEN], "left_semi")
        .withColumn("latest_before", F.max(earlier).over(of_token))
        .where((F.col("date") >= F.lit(start)) | (F.col("date") == F.col("latest_before")))
        .drop("latest_before")
    )
    times = publications.where(F.col("date") <= F.lit(end)).select("date", "row_key", "timestamp")
    return times.join(F.broadcast(counting), ["date", "row_key"])
