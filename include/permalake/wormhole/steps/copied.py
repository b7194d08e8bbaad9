"""Enriched tables of days that are copied from a publisher.

Prices and answers of chains cannot be derived from VAAs: the tables that hold them are taken over as they
were signed, and the daily figures are computed from these. The quotes in use join ``token_prices``.
"""

from __future__ import annotations

from datetime import date
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.contracts.steps import StepResult
from permalake.errors import PermalakeError
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.day_queries import DayQueries, stage_queries
from permalake.pipeline.jobs import StepContext
from permalake.transparency.landed import LandedDays
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.enrich.token_values import listed_tokens
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources.published_vaas import DETAILS, TVL, PublishedVaas, landed_between
from permalake.wormhole.tables import amount_queries
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.token_metadata import TOKEN
from permalake.wormhole.tables.used_quotes import token_prices

_KEY = ["date", "row_key"]


def stage_copied(context: StepContext, attempt: Attempt, landed: LandedDays) -> StepResult:
    """Stage prices, chain details and analytics of days whose events were copied."""
    arguments, settings, spark = context.arguments, context.work.settings, context.spark
    copied = PublishedVaas(spark, landed_between(landed, arguments.start, arguments.end))
    jobs.stage(attempt, {name: copied.taken(name) for name in DETAILS}, WORMHOLE_TABLES)
    attempt.append_new(token_prices(_quotes(attempt, copied)), TOKEN_PRICES)
    directory = settings.wormhole.reference if settings.wormhole else None
    reference = load_reference(directory)
    known = {made.LISTED: listed_tokens(reference), made.LIMITS: reference.limit_table()}
    figures = {n: query for n, query in made.enriched_tables(reference.chains).items() if n not in DETAILS}
    functions = amount_queries.functions(directory)
    stage_queries(attempt, DayQueries(figures, WORMHOLE_TABLES, known, functions), lambda: spark)
    context.report(f"enrich {arguments}: {jobs.counted(attempt, 'token_transfer_details')} taken over")
    return StepResult()


def _quotes(attempt: Attempt, copied: PublishedVaas) -> DataFrame:
    """Return the quotes that the copied values rest on."""
    spark = copied.spark
    sent = attempt.days(spark, "token_transfer_payload").select(*_KEY, *TOKEN)
    moved = attempt.days(spark, "application_transfers").select(
        *_KEY, F.col("token_chain").alias(TOKEN[0]), F.col("token_address").alias(TOKEN[1])
    )
    details = copied.taken("token_transfer_details").join(sent, _KEY)
    others = copied.taken("application_transfer_details").join(moved, _KEY)
    quotes = [
        _used(details, "price", "token_price_usd", F.col("price_confidence")),
        _used(details, "check_price", "check_price_usd", F.lit(None)),
        _used(others, "price", "token_price_usd", F.lit(None)),
    ]
    every = reduce(DataFrame.unionByName, quotes)
    return every.groupBy(*TOKEN_PRICES.key, "price_usd").agg(F.max("confidence").alias("confidence"))


def _used(rows: DataFrame, prefix: str, price: str, confidence: Column) -> DataFrame:
    return rows.select(
        *TOKEN,
        F.col(f"{prefix}_source").alias("provider"),
        F.col(f"{prefix}_timestamp").alias("quote_time"),
        F.col(price).alias("price_usd"),
        confidence.cast("double").alias("confidence"),
    ).where("provider IS NOT NULL AND quote_time IS NOT NULL AND price_usd IS NOT NULL")


def copied_values(context: StepContext, landed: LandedDays, start: date, end: date) -> DataFrame:
    """Return the rows of ``tvl_daily`` of start..end as they were signed."""
    try:
        days = list(landed.land(start, end, [WORMHOLE_TABLES[TVL]], force=True, keep=False).values())
    except PermalakeError as error:
        context.report(f"carry {context.arguments.network}: {error}")
        days = landed_between(landed, start, end)
    return PublishedVaas(context.spark, days).taken(TVL)
