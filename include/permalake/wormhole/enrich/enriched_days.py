"""What the enriched and analytical tables of a range of days are made of, from its published events."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from permalake.config import Settings
from permalake.engine.rows import Relation
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.day_queries import DayQueries
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.enrich.attestations import DayTables, attested_records
from permalake.wormhole.enrich.chains import Chains
from permalake.wormhole.enrich.token_values import (
    PriceSources,
    listed_tokens,
    reference_tokens,
    token_values,
)
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables import amount_queries, chain_questions, moved_tokens
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.chain_questions import QUESTIONS, WITH_DECIMALS, questions
from permalake.wormhole.tables.token_metadata import ATTESTED, token_metadata


class Enrichment(NamedTuple):
    """What the tables of some days are made of: their queries, what these read beside tables, and quotes.

    ``quotes``: those that serve, or would with more confidence.
    """

    queries: Mapping[str, str]
    inputs: Mapping[str, Relation]
    quotes: Sequence[Relation]


def enriched(
    settings: Settings,
    days: DayLanding,
    tables: DayTables,
    start: dt.date,
    end: dt.date,
    *,
    sound_before: dt.date,
    sources: PriceSources,
    chains: Chains,
) -> Enrichment:
    """Find out what the tables that follow from the events of ``start..end`` are made of.

    ``days`` lands what follows from the staged rows of the range; ``tables`` gives history as published, and
    the range as staged. ``sound_before``: see
    :func:`~permalake.wormhole.enrich.attestations.attested_records`. ``sources`` tell prices, ``chains``
    what only RPCs know.
    """
    directory = settings.wormhole.reference if settings.wormhole else None
    reference = load_reference(directory)
    moved = days.queries(DayQueries(moved_tokens.QUERIES, WORMHOLE_TABLES), moved_tokens.SCHEMAS).datasets
    attested = attested_records(days, tables, start, end, sound_before)
    with_decimals = (
        f"SELECT * FROM ({token_metadata(moved_tokens.TOKENS)}) AS every WHERE decimals IS NOT NULL"
    )
    asked = days.queries(
        DayQueries(
            {WITH_DECIMALS: with_decimals, QUESTIONS: questions(reference.chains)},
            WORMHOLE_TABLES,
            {**moved, ATTESTED: attested, **reference_tokens(reference)},
            amount_queries.functions(directory),
        ),
        {QUESTIONS: chain_questions.SCHEMA},
    )
    answers = {made.ANSWERS: chains.answers(days, asked.dataset(QUESTIONS), start, end)}
    values = token_values(days, {**moved, **answers, ATTESTED: attested}, reference, sources)
    inputs = {
        **values.inputs,
        **answers,
        made.LISTED: listed_tokens(reference),
        made.LIMITS: reference.limit_table(),
    }
    return Enrichment(made.enriched_tables(reference.chains), inputs, values.quotes)
