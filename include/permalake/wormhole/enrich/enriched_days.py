"""What the enriched and analytical tables of a range of days are made of, from its published events."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.config import Settings
from permalake.pipeline.day_queries import DayQueries, KnownFrames
from permalake.pipeline.query_frames import DayTables, query_frames
from permalake.spark.frames import of_rows
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.value_reasons import DENIED
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.chains import Chains
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.stand_ins import stand_ins
from permalake.wormhole.reference import Reference, load_reference
from permalake.wormhole.tables import amount_queries, chain_questions, wanted_tokens
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.carried_state import Tables, attested_until
from permalake.wormhole.tables.chain_questions import QUESTIONS, TOLD, questions
from permalake.wormhole.tables.nearest_quotes import WANTED, compared, quoted
from permalake.wormhole.tables.token_metadata import TOKEN, completed, token_metadata

_QUOTE = (*TOKEN, "provider", "quote_time", "price_usd", "confidence")


class Enrichment(NamedTuple):
    """What the tables of some days are made of: their queries, what these read beside tables, and quotes.

    ``prices``: quotes that serve, or would with more confidence.
    """

    queries: Mapping[str, str]
    known: Mapping[str, DataFrame]
    prices: DataFrame


def enriched(
    settings: Settings,
    days: DayTables,
    table: Tables,
    start: dt.date,
    end: dt.date,
    *,
    sound_before: dt.date,
    providers: Sequence[PriceProvider],
    cross_check: PriceProvider | None,
    chains: Chains,
) -> Enrichment:
    """Find out what the tables that follow from the events of ``start..end`` are made of.

    ``days`` are the staged rows of the range; ``table`` gives a whole table by name: history as published,
    and the range as staged. ``sound_before``: see
    :func:`~permalake.wormhole.tables.carried_state.attested_until`. ``providers`` tell prices, the first
    one first, ``cross_check`` what to compare them with; ``chains`` what only RPCs know.
    """
    # Kept by checkpoint, here and in what this calls: of cached frames that stand in each other Spark writes
    # the whole plan at every stage of every query, and works them out again when a cache below them grows.
    spark = days.spark
    directory = settings.wormhole.reference if settings.wormhole else None
    reference = load_reference(directory)
    functions = amount_queries.functions(directory)
    inside = F.col("date").between(F.lit(start), F.lit(end))
    listed = spark.createDataFrame(reference.token_table())
    attested = attested_until(table, end, sound_before).where(inside)
    moved = query_frames(days, DayQueries(wanted_tokens.QUERIES, WORMHOLE_TABLES), wanted_tokens.SCHEMAS)
    tokens = moved[wanted_tokens.TOKENS]
    metadata = token_metadata(tokens, attested, listed).localCheckpoint()
    told_tokens = metadata.where("decimals IS NOT NULL").select("date", *TOKEN)
    asked = query_frames(
        days,
        DayQueries(
            {QUESTIONS: questions(reference.chains)},
            WORMHOLE_TABLES,
            KnownFrames({TOLD: told_tokens}),
            functions,
        ),
        {QUESTIONS: chain_questions.SCHEMA},
    )
    told = chains.answers(spark, asked[QUESTIONS]).localCheckpoint()
    rules = settings.prices
    every_want = moved[wanted_tokens.WANTED]
    wanted = priceable(spark, directory, every_want).localCheckpoint()
    priced = price_providers.priced(spark, providers, wanted, rules)
    checked = None
    if cross_check is not None:
        checked = price_providers.priced(spark, [cross_check], priced.select(*WANTED), rules)
        priced = compared(priced, checked, rules).localCheckpoint()
    counting = priced.where("reason IS NULL").select(*WANTED)
    unpriced = wanted.join(counting, list(WANTED), "left_anti")
    standing = stand_ins(spark, reference, providers, unpriced, rules)
    used = [quotes for quotes in (priced, checked, standing.quotes) if quotes is not None]
    found = {
        made.METADATA: completed(metadata, tokens, told),
        made.QUOTES: quoted(every_want, priced, _lacks(spark, reference, providers, unpriced)),
        made.CHECKS: None if checked is None else checked.where("reason IS NULL"),
        made.STAND_INS: standing.prices,
        made.ANSWERS: told,
        made.LISTED: listed.select("chain", "token_address").toDF(*TOKEN),
        made.LIMITS: spark.createDataFrame(reference.limit_table()),
    }
    known = {name: _shaped(spark, found[name], columns) for name, columns in made.KNOWN.items()}
    prices = reduce(DataFrame.unionByName, [quotes.select(*_QUOTE) for quotes in used])
    return Enrichment(made.enriched_tables(reference.chains), known, prices)


def _lacks(
    spark: SparkSession, reference: Reference, providers: Sequence[PriceProvider], unpriced: DataFrame
) -> DataFrame:
    """Return why tokens have no quote at all: origin_chain, origin_address, lack."""
    tokens = [(row[TOKEN[0]], row[TOKEN[1]]) for row in unpriced.select(*TOKEN).distinct().collect()]
    reasons = dict.fromkeys(reference.denied, DENIED) | price_providers.lacks(providers, tokens)
    rows = [(*token, reason) for token, reason in reasons.items()]
    return of_rows(spark, rows, "origin_chain int, origin_address string, lack string")


def _shaped(spark: SparkSession, frame: DataFrame | None, columns: pa.Schema) -> DataFrame:
    """Return the columns of a frame that queries read; None: there are no rows."""
    return spark.createDataFrame(columns.empty_table()) if frame is None else frame.select(*columns.names)


def priceable(spark: SparkSession, reference: Path | None, wanted: DataFrame) -> DataFrame:
    """Return the distinct wants of tokens that are not denied."""
    denied = spark.createDataFrame(load_reference(reference).denied_table()).toDF(*TOKEN)
    return wanted.join(F.broadcast(denied), [*TOKEN], "left_anti").select(*WANTED).distinct()
