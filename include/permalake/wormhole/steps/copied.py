"""Enriched tables of days that are copied from a publisher.

Prices and answers of chains cannot be derived from VAAs: the tables that hold them are taken over as they
were signed, and the daily figures are computed from these. The quotes in use join ``token_prices``.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from permalake.contracts.sql_text import same
from permalake.contracts.steps import StepResult
from permalake.engine.rows import Relation
from permalake.errors import PermalakeError
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.day_queries import DayQueries, stage_queries
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.side_rows import append_new
from permalake.transparency.landed import LandedDays
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.enrich.token_values import listed_tokens
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources.published_vaas import DETAILS, TVL, landed_between, signed_rows
from permalake.wormhole.tables import amount_queries
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.used_quotes import used_quotes

_TOKENS = {
    "token_transfer_details": ("token_transfer_payload", "origin_chain, origin_address"),
    "application_transfer_details": (
        "application_transfers",
        "token_chain AS origin_chain, token_address AS origin_address",
    ),
}
_QUOTES, _USED = "copied_quotes", "used_quotes"


def _signed(name: str) -> str:
    return f"signed_{name}"


def _quotes(details: str, prefix: str, price: str, confidence: str) -> str:
    sent, names = _TOKENS[details]
    return f"""
SELECT {names},
    {prefix}_source AS provider, {prefix}_timestamp AS quote_time, {price} AS price_usd,
    CAST({confidence} AS DOUBLE) AS confidence
FROM {_signed(details)} AS details JOIN {sent} AS sent ON {same("details", "sent", "date", "row_key")}
WHERE {prefix}_source IS NOT NULL AND {prefix}_timestamp IS NOT NULL AND {price} IS NOT NULL
"""


_COPIED_QUOTES = f"""
SELECT origin_chain, origin_address, provider, quote_time, price_usd, max(confidence) AS confidence,
    CAST(NULL AS STRING) AS coin
FROM ({_quotes("token_transfer_details", "price", "token_price_usd", "price_confidence")}
    UNION ALL {_quotes("token_transfer_details", "check_price", "check_price_usd", "NULL")}
    UNION ALL {_quotes("application_transfer_details", "price", "token_price_usd", "NULL")}) AS every
GROUP BY ALL
"""
"""Query of the quotes that the copied values rest on."""


def stage_copied(context: StepContext, attempt: Attempt, landed: LandedDays) -> StepResult:
    """Stage prices, chain details and analytics of days whose events were copied."""
    arguments, settings, spark = context.arguments, context.work.settings, context.spark
    copied = landed_between(landed, arguments.start, arguments.end)
    signed = {_signed(name): signed_rows(copied, name) for name in DETAILS}
    days = DayLanding.of(spark, attempt)
    quotes = {_QUOTES: _COPIED_QUOTES, _USED: used_quotes([_QUOTES], datetime.now(UTC))}
    used = days.queries(DayQueries(quotes, WORMHOLE_TABLES, signed), {_USED: TOKEN_PRICES.arrow})
    append_new(attempt, used.dataset(_USED), TOKEN_PRICES, spark)
    directory = settings.wormhole.reference if settings.wormhole else None
    reference = load_reference(directory)
    inputs = {made.LISTED: listed_tokens(reference), made.LIMITS: reference.limit_table()}
    tables = {
        **made.enriched_tables(reference.chains),
        **{name: f"SELECT * FROM {_signed(name)}" for name in DETAILS},
    }
    functions = amount_queries.functions(directory)
    stage_queries(
        attempt, DayQueries(tables, WORMHOLE_TABLES, {**inputs, **signed}, functions), lambda: spark
    )
    context.report(f"enrich {arguments}: {jobs.counted(attempt, 'token_transfer_details')} taken over")
    return StepResult()


def copied_values(context: StepContext, landed: LandedDays, start: date, end: date) -> Relation:
    """Return the rows of ``tvl_daily`` of start..end as they were signed."""
    try:
        days = list(landed.land(start, end, [WORMHOLE_TABLES[TVL]], force=True, keep=False).values())
    except PermalakeError as error:
        context.report(f"carry {context.arguments.network}: {error}")
        days = landed_between(landed, start, end)
    return signed_rows(days, TVL)
