"""Step ``carry`` of Wormhole: published days → attested tokens and locked value at the days' ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial

from pyspark.sql import DataFrame

from permalake.lake import CarryAttempt
from permalake.pipeline import jobs
from permalake.pipeline.day_queries import DayQueries, KnownFrames
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.query_frames import DayTables, query_frames
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.custody_tables import TOKEN_CUSTODY
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.custody import Custody
from permalake.wormhole.enrich.enriched_days import priceable
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.steps.answer_caches import answer_cache
from permalake.wormhole.steps.quotes import asking, price_cache, store_used
from permalake.wormhole.tables import amount_queries
from permalake.wormhole.tables import tvl_daily as tvl
from permalake.wormhole.tables.attested_tokens import attested_tokens
from permalake.wormhole.tables.carried_state import latest_before
from permalake.wormhole.tables.nearest_quotes import WANTED
from permalake.wormhole.tables.used_attestations import ATTESTED, BEFORE, OUTDATED, OUTDATED_DAY

_CUSTODY_SECONDS = 600.0
"""How long custody may hold up the publication of the carried tables; the newest day may take longer."""


def stage(context: StepContext, attempt: CarryAttempt) -> Mapping[date, str]:
    """Stage the carried tables; return days that used an attestation that has changed.

    Quotes at the days' ends that ``token_prices`` lacks are asked for, and kept there.
    """
    own, published = partial(attempt.days, context.spark), partial(attempt.published, context.spark)
    settings = context.work.settings
    functions = amount_queries.functions(settings.wormhole.reference if settings.wormhole else None)
    days = DayTables(
        context.spark,
        lambda name: attempt.files.published_rows(name, attempt.start, attempt.end).scan(),
        own,
    )
    publications = own("message_publication")
    before = latest_before(published("attested_tokens"), attempt.start)
    attested = attested_tokens(own("asset_meta_payload"), publications, before).localCheckpoint()
    state = latest_before(published("tvl_daily"), attempt.start)
    flows = query_frames(
        days,
        DayQueries({"flows": tvl.FLOWS, "dates": tvl.DATES}, WORMHOLE_TABLES, functions=functions),
        {"flows": tvl.FLOW, "dates": tvl.DATE},
    )
    held = tvl.balances(flows["flows"], state, flows["dates"]).localCheckpoint()
    priced = _priced(context, attempt, held)
    store_used(context, attempt, priced, context.report)
    counting = priced.where("reason IS NULL")
    frames = {"attested_tokens": attested, "tvl_daily": tvl.tvl_daily(held, counting)}
    jobs.stage(attempt, frames, WORMHOLE_TABLES)
    _ask_custody(context, attempt, held)
    then = published("attested_tokens").where(_inside(attempt))
    told = KnownFrames({ATTESTED: attested, BEFORE: then})
    outdated = query_frames(
        days,
        DayQueries({"outdated": OUTDATED}, WORMHOLE_TABLES, told, functions),
        {"outdated": OUTDATED_DAY},
    )
    return {
        row["date"]: f"the attestation of token {row['token']} has changed"
        for row in outdated["outdated"].collect()  # a row a day
    }


def _inside(attempt: CarryAttempt) -> str:
    return f"date BETWEEN DATE'{attempt.start}' AND DATE'{attempt.end}'"


def _ask_custody(context: StepContext, attempt: CarryAttempt, held: DataFrame) -> None:
    """Store what the bridges held of these tokens; what takes too long waits for ``--only enrich``."""
    if context.order.stored:
        context.report("custody: no chain is asked (--stored)")
        return
    cache = answer_cache(attempt, TOKEN_CUSTODY, lambda text, _: context.report(text))
    with opened(context.work.settings) as nodes:
        Custody(nodes, cache, seconds=_CUSTODY_SECONDS).ask(context.spark, held, (attempt.start, attempt.end))


def _priced(context: StepContext, attempt: CarryAttempt, held: DataFrame) -> DataFrame:
    """Return the quote nearest to each day's end of the tokens held then."""
    settings = context.work.settings
    cache = price_cache(context, attempt, context.report)
    reference = settings.wormhole.reference if settings.wormhole else None
    wanted = priceable(context.spark, reference, held.select(*WANTED))
    providers = price_providers.providers(settings, cache, asking(context, again=False))
    return price_providers.priced(context.spark, providers, wanted, settings.prices)
