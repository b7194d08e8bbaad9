"""Step ``enrich_analytics`` of Wormhole: staged events → prices, chain details and the daily analytics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import functions as F

from permalake.contracts.steps import StepResult
from permalake.errors import PermalakeError
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.day_queries import DayQueries, KnownFrames, stage_queries
from permalake.pipeline.jobs import Order, StepContext
from permalake.pipeline.query_frames import DayTables, query_frames
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.custody_tables import TOKEN_CUSTODY
from permalake.wormhole.contracts.redemption_tables import REDEMPTIONS
from permalake.wormhole.contracts.tables import CHAIN_ANSWERS, MESSAGE_PUBLICATION, TVL_DAILY
from permalake.wormhole.enrich.chains import Chains
from permalake.wormhole.enrich.custody import Custody
from permalake.wormhole.enrich.enriched_days import enriched
from permalake.wormhole.enrich.price_providers import cross_check, providers
from permalake.wormhole.enrich.questions import ChainRpc
from permalake.wormhole.enrich.redemptions import Redemptions
from permalake.wormhole.enrich.rpcs import rpcs
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources import wormhole_source
from permalake.wormhole.sources.wormhole_source import Days
from permalake.wormhole.steps.answer_caches import answer_cache
from permalake.wormhole.steps.quotes import asking, price_cache, store_used
from permalake.wormhole.tables import amount_queries
from permalake.wormhole.tables.redemptions import SENT, SENT_TRANSFER, in_flight, news, reported_redemptions


def run(context: StepContext) -> StepResult:
    """Stage prices, chain details and analytics of the days."""
    order = context.order
    context.report(f"enrich {order}: prices, chain details, analytics")
    with context.work.builds.resume_or_begin(order.network, order.start, order.end, order.run_id) as attempt:
        return _staged(context, attempt)


def _staged(context: StepContext, attempt: Attempt) -> StepResult:
    order, settings, spark = context.order, context.work.settings, context.spark
    cache = price_cache(context, attempt, attempt.record.note)
    # A run that starts here fills in: what is stored as "none" is requested again. A forced run from the top
    # builds from what is stored, and asks for nothing that is settled.
    again = MESSAGE_PUBLICATION.name not in attempt.staged.changed() and not order.stored
    answers = answer_cache(attempt, CHAIN_ANSWERS, attempt.record.note)
    waiting = context.work.carries.waiting(order.network)
    nodes = rpcs(settings)
    context.report(f"enrich {order}: {_asked(order, again=again)}")
    days = DayTables(
        spark,
        lambda name: attempt.files.rows(name, order.start, order.end).scan(),
        partial(attempt.days, spark),
    )
    recheck = again and order.force
    with Chains(nodes, answers, again=again, recheck=recheck, stored=order.stored) as chains:
        enrichment = enriched(
            settings,
            days,
            partial(attempt.table, spark),
            order.start,
            order.end,
            sound_before=min(order.start, waiting.span[0]) if waiting else order.start,
            providers=providers(settings, cache, asking(context, again=again)),
            cross_check=cross_check(settings, cache, asking(context, again=again)),
            chains=chains,
        )
        if not order.stored:
            _redeem(context, attempt, days, nodes, again=again)
        if again:
            _ask_custody(context, attempt, nodes)
    quotes = store_used(context, attempt, enrichment.prices, attempt.record.note)
    reference = settings.wormhole.reference if settings.wormhole else None
    queries = DayQueries(
        enrichment.queries,
        WORMHOLE_TABLES,
        KnownFrames(enrichment.known),
        amount_queries.functions(reference),
    )
    stage_queries(attempt, queries, lambda: spark)
    counted = jobs.counted(attempt, "token_transfer_details")
    context.report(f"enrich {order}: {counted}, {quotes} new quotes")
    return StepResult()


def _asked(order: Order, *, again: bool) -> str:
    """Return what services are asked for, and why, as the log tells it."""
    if order.stored:
        return "no service is asked, stored answers serve (--stored)"
    if not again:
        return "services are asked for what is not stored"
    facts = ", and stored facts with a part missing (--force)" if order.force else ""
    return (
        "services are asked again (--only enrich) for transfers without a price or in flight, questions "
        f"stored without an answer, balances that are not known{facts}"
    )


def _redeem(
    context: StepContext, attempt: Attempt, days: DayTables, nodes: Mapping[int, ChainRpc], *, again: bool
) -> None:
    """Store what the source and the target chains tell of the redemptions of the days' transfers.

    A run that fills in asks the source again for days with transfers in flight.
    """
    order, spark = context.order, context.spark
    inside = F.col("date").between(F.lit(order.start), F.lit(order.end))
    transfers = query_frames(days, DayQueries({"sent": SENT}, WORMHOLE_TABLES), {"sent": SENT_TRANSFER})
    sent = transfers["sent"].localCheckpoint()
    cache = answer_cache(attempt, REDEMPTIONS, attempt.record.note)
    section = wormhole_source.section(context.work.settings)
    if again and wormhole_source.is_live(section):
        left = in_flight(sent, cache.read(spark).where(inside)).select("date").distinct().collect()
        try:
            late = wormhole_source.ask_again(context.work.settings, section, [row["date"] for row in left])
        except PermalakeError as error:
            attempt.record.note(f"redemptions: {error}")
        else:
            context.work.builds.mark_stale(order.network, late, f"{section.source}: late VAAs")
    asked = Days(order.start, order.end)
    reported = wormhole_source.redemptions(spark, context.work.settings, section, asked)
    if reported is not None:
        chains = load_reference(section.reference).chains
        evm = [number for number, chain in chains.items() if chain.family == "evm"]
        cache.add(news(reported_redemptions(sent, reported, evm), cache.read(spark).where(inside)))
    Redemptions(nodes, cache, again=again).ask(spark, sent, (order.start, order.end))


def _ask_custody(context: StepContext, attempt: Attempt, nodes: Mapping[int, ChainRpc]) -> None:
    """Store what the bridges held at the ends of days that were carried before; ``carry`` asks of others."""
    cache = answer_cache(attempt, TOKEN_CUSTODY, attempt.record.note)
    held = attempt.table(context.spark, TVL_DAILY.name)
    Custody(nodes, cache).ask(context.spark, held, (context.order.start, context.order.end))
