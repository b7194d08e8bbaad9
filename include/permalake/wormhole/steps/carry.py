"""Step ``carry`` of Wormhole: published days → attested tokens and locked value at the days' ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial

from pyspark.sql import DataFrame

from permalake.engine.rows import Relation
from permalake.lake import CarryAttempt
from permalake.pipeline import jobs
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.day_queries import DayQueries
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.mirrored_days import landed_days
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.custody_tables import TOKEN_CUSTODY
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.custody import Custody
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.enrich.token_values import priceable, reference_tokens
from permalake.wormhole.reference import load_reference
from permalake.wormhole.steps.answer_caches import answer_cache
from permalake.wormhole.steps.copied import copied_values
from permalake.wormhole.steps.quotes import asking, price_cache, store_used
from permalake.wormhole.tables import amount_queries
from permalake.wormhole.tables import tvl_daily as tvl
from permalake.wormhole.tables.attested_tokens import ATTESTED_TOKENS, STATE
from permalake.wormhole.tables.carried_state import latest_before
from permalake.wormhole.tables.nearest_quotes import COUNTING, NEAREST, PRICED, WANT, WANTED, WANTS
from permalake.wormhole.tables.used_attestations import ATTESTED, BEFORE, OUTDATED, OUTDATED_DAY

_HELD, _COUNTING = "held_tokens", "counting_quotes"
_CUSTODY_SECONDS = 600.0
"""How long custody may hold up the publication of the carried tables; the newest day may take longer."""


def stage(context: StepContext, attempt: CarryAttempt) -> Mapping[date, str]:
    """Stage the carried tables; return days that used an attestation that has changed.

    Quotes at the days' ends that ``token_prices`` lacks are asked for, and kept there.
    """
    published = partial(attempt.published, context.spark)
    settings = context.work.settings
    functions = amount_queries.functions(settings.wormhole.reference if settings.wormhole else None)
    days = DayLanding(
        context.spark,
        attempt.landing,
        lambda name: attempt.files.published_rows(name, attempt.start, attempt.end).scan(),
    )
    columns = WORMHOLE_TABLES["attested_tokens"].arrow
    attestations = days.queries(
        DayQueries({ATTESTED: ATTESTED_TOKENS}, WORMHOLE_TABLES, {STATE: _attested_before(attempt)}),
        {ATTESTED: columns},
    )
    attested = attestations.frame(context.spark, ATTESTED)
    state = latest_before(published("tvl_daily"), attempt.start)
    landed = days.queries(
        DayQueries({"flows": tvl.FLOWS, "dates": tvl.DATES}, WORMHOLE_TABLES, functions=functions),
        {"flows": tvl.FLOW, "dates": tvl.DATE},
    )
    flows, dates = (landed.frame(context.spark, name) for name in ("flows", "dates"))
    held = tvl.balances(flows, state, dates).localCheckpoint()
    if (copied := landed_days(context)) is not None:
        values = tvl.as_signed(held, copied_values(context, copied, attempt.start, attempt.end))
    else:
        priced = _priced(context, attempt, days, held)
        store_used(context, attempt, days, [priced], context.report)
        counting = {_COUNTING: f"SELECT * FROM {PRICED} WHERE {COUNTING}"}
        quotes = days.landed(counting, {_COUNTING: NEAREST}, {PRICED: priced})
        values = tvl.tvl_daily(held, quotes.frame(context.spark, _COUNTING))
    jobs.stage(attempt, {"attested_tokens": attested, "tvl_daily": values}, WORMHOLE_TABLES)
    _ask_custody(context, attempt, held)
    then = attempt.files.published_rows("attested_tokens", attempt.start, attempt.end).scan()
    outdated = days.queries(
        DayQueries(
            {"outdated": OUTDATED},
            WORMHOLE_TABLES,
            {**attestations.datasets, BEFORE: then},
            functions,
        ),
        {"outdated": OUTDATED_DAY},
    )
    return {
        row["date"]: f"the attestation of token {row['token']} has changed"
        for row in outdated.dataset("outdated").to_table().to_pylist()  # a row a day
    }


def _attested_before(attempt: CarryAttempt) -> Relation:
    """Return the published ``attested_tokens`` of the latest day before the attempt's."""
    files, name = attempt.files, "attested_tokens"
    latest = files.latest_before(name)
    if latest is None:
        return WORMHOLE_TABLES[name].arrow.empty_table()
    return files.published_rows(name, latest, latest).scan()


def _ask_custody(context: StepContext, attempt: CarryAttempt, held: DataFrame) -> None:
    """Store what the bridges held of these tokens; what takes too long waits for ``--only enrich``."""
    if context.arguments.stored:
        context.report("custody: no chain is asked (--stored)")
        return
    cache = answer_cache(attempt, TOKEN_CUSTODY, lambda text, _: context.report(text))
    with opened(context.work.settings) as nodes:
        Custody(nodes, cache, seconds=_CUSTODY_SECONDS).ask(context.spark, held, (attempt.start, attempt.end))


def _priced(context: StepContext, attempt: CarryAttempt, days: DayLanding, held: DataFrame) -> Relation:
    """Return the quote nearest to each day's end of the tokens held then."""
    settings = context.work.settings
    cache = price_cache(context, attempt, context.report)
    reference = load_reference(settings.wormhole.reference if settings.wormhole else None)
    moments = days.frames({_HELD: held.select(*WANTED)}, {_HELD: WANT}).datasets
    given = {**moments, **reference_tokens(reference)}
    wants = days.results({WANTS: priceable(_HELD)}, {WANTS: WANT}, given)[WANTS]
    providers = price_providers.providers(settings, cache, asking(context, again=False))
    return price_providers.priced(days, providers, wants, settings.prices)
