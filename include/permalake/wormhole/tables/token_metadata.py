"""Attestations, token list and RPCs → decimals, symbol and name of a token on a day."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.chain_questions import TOKEN as QUESTION_TOKEN

TOKEN = ("origin_chain", "origin_address")
_RECORD = ("decimals", "symbol", "name")


def token_metadata(wanted: DataFrame, attested: DataFrame, listed: DataFrame) -> DataFrame:
    """Return decimals, symbol and name of each wanted (date, token) that is known.

    All three values come from one record: the latest attestation up to and including the day, else the
    token list. ``attested`` are rows of ``attested_tokens`` of these days; ``listed`` has chain,
    token_address, decimals, symbol, name.
    """
    days = wanted.select("date", *TOKEN).distinct()
    told = attested.select("date", *TOKEN, F.struct(*_RECORD).alias("attested"))
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


def completed(metadata: DataFrame, wanted: DataFrame, answers: DataFrame) -> DataFrame:
    """Add tokens whose decimals only their chain's RPC has to the result of :func:`token_metadata`.

    ``answers`` are rows of ``chain_answers`` that hold an answer.
    """
    known = metadata.where("decimals IS NOT NULL")
    untold = wanted.select("date", *TOKEN).distinct().join(known, ["date", *TOKEN], "left_anti")
    told = answers.where(F.col("question") == QUESTION_TOKEN).select(
        F.col("chain").alias("origin_chain"), F.col("subject").alias("origin_address"), *_RECORD
    )
    asked = untold.join(told, [*TOKEN])
    listed = metadata.where("decimals IS NULL").join(asked, ["date", *TOKEN], "left_anti")
    return known.unionByName(asked.select(*known.columns)).unionByName(listed)
