"""Step ``enrich_analytics`` of Wormhole: staged events → prices, chain details and the daily analytics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

from permalake.contracts.steps import StepResult
from permalake.errors import PermalakeError
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.day_queries import DayQueries, stage_queries
from permalake.pipeline.jobs import StepArguments, StepContext
from permalake.pipeline.mirrored_days import landed_days
from permalake.pipeline.relations import dates_of
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.custody_tables import TOKEN_CUSTODY
from permalake.wormhole.contracts.redemption_tables import REDEMPTIONS
from permalake.wormhole.contracts.tables import CHAIN_ANSWERS, MESSAGE_PUBLICATION, TVL_DAILY
from permalake.wormhole.enrich.attestations import StagedDays
from permalake.wormhole.enrich.chains import Chains
from permalake.wormhole.enrich.custody import Custody
from permalake.wormhole.enrich.enriched_days import enriched
from permalake.wormhole.enrich.questions import ChainRpc
from permalake.wormhole.enrich.redemptions import Redemptions
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.enrich.token_values import price_sources
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources import wormhole_source
from permalake.wormhole.sources.wormhole_source import Days
from permalake.wormhole.steps.answer_caches import answer_cache
from permalake.wormhole.steps.copied import stage_copied
from permalake.wormhole.steps.quotes import asking, price_cache, store_used
from permalake.wormhole.tables import amount_queries
from permalake.wormhole.tables.redemptions import (
    KEPT,
    REPORTED,
    REPORTED_SIDE,
    SENT,
    SENT_QUERY,
    SENT_TRANSFER,
    TRANSFERS_IN_FLIGHT,
    reported_redemptions,
)

_TOPICS = ("prices: ", "chain details: ", "redemptions: ", "custody: ")
"""The beginnings of what this step notes on days: what services did not tell, and where."""


def run(context: StepContext) -> StepResult:
    """Stage prices, chain details and analytics of the days."""
    arguments = context.arguments
    context.report(f"enrich {arguments}: prices, chain details, analytics")
    with context.work.builds.resume_or_begin(
        arguments.network, arguments.start, arguments.end, arguments.run_id
    ) as attempt:
        return _staged(context, attempt)


def _staged(context: StepContext, attempt: Attempt) -> StepResult:
    if (landed := landed_days(context)) is not None:
        return stage_copied(context, attempt, landed)
    arguments, settings, spark = context.arguments, context.work.settings, context.spark
    if not arguments.stored:  # services are asked: what they did not tell before may be settled
        attempt.record.drop(*_TOPICS)
    cache = price_cache(context, attempt, attempt.record.note)
    # A run that starts here fills in: what is stored as "none" is requested again. A forced run from the top
    # builds from what is stored, and asks for nothing that is settled.
    again = MESSAGE_PUBLICATION.name not in attempt.staged.changed() and not arguments.stored
    answers = answer_cache(spark, attempt, CHAIN_ANSWERS, attempt.record.note)
    waiting = context.work.carries.waiting(arguments.network)
    context.report(f"enrich {arguments}: {_asked(arguments, again=again)}")
    days = DayLanding.of(spark, attempt)
    recheck = again and arguments.force
    with opened(settings) as nodes:
        enrichment = enriched(
            settings,
            days,
            StagedDays(attempt),
            arguments.start,
            arguments.end,
            sound_before=min(arguments.start, waiting.span[0]) if waiting else arguments.start,
            sources=price_sources(settings, cache, asking(context, again=again)),
            chains=Chains(nodes, answers, again=again, recheck=recheck, stored=arguments.stored),
        )
        if not arguments.stored:
            _redeem(context, attempt, days, nodes, again=again)
        if again:
            _ask_custody(context, attempt, days, nodes)
    quotes = store_used(context, attempt, days, enrichment.quotes, attempt.record.note)
    reference = settings.wormhole.reference if settings.wormhole else None
    queries = DayQueries(
        enrichment.queries,
        WORMHOLE_TABLES,
        enrichment.inputs,
        amount_queries.functions(reference),
    )
    stage_queries(attempt, queries, lambda: spark)
    counted = jobs.counted(attempt, "token_transfer_details")
    context.report(f"enrich {arguments}: {counted}, {quotes} new quotes")
    return StepResult()


def _asked(arguments: StepArguments, *, again: bool) -> str:
    """Return what services are asked for, and why, as the log tells it."""
    if arguments.stored:
        return "no service is asked, stored answers serve (--stored)"
    if not again:
        return "services are asked for what is not stored"
    facts = ", and stored facts with a part missing (--force)" if arguments.force else ""
    return (
        "services are asked again (--only enrich) for transfers without a price or in flight, questions "
        f"stored without an answer, balances that are not known{facts}"
    )


def _redeem(
    context: StepContext, attempt: Attempt, days: DayLanding, nodes: Mapping[int, ChainRpc], *, again: bool
) -> None:
    """Store what the source and the target chains tell of the redemptions of the days' transfers.

    A run that fills in asks the source again for days with transfers in flight.
    """
    arguments, spark = context.arguments, context.spark
    transfers = days.queries(DayQueries({SENT: SENT_QUERY}, WORMHOLE_TABLES), {SENT: SENT_TRANSFER})
    cache = answer_cache(spark, attempt, REDEMPTIONS, attempt.record.note)
    section = wormhole_source.section(context.work.settings)
    if again and wormhole_source.is_live(section):
        inputs = {**transfers.datasets, KEPT: cache.read(arguments.start, arguments.end)}
        left = days.results({"left": TRANSFERS_IN_FLIGHT}, {"left": SENT_TRANSFER}, inputs)["left"]
        reason = f"{section.source}: late VAAs"
        mark_late = partial(context.work.builds.mark_stale, arguments.network, reason=reason)
        try:
            late = wormhole_source.ask_again(
                context.work.settings, section, sorted(dates_of(left)), mark_late
            )
        except PermalakeError as error:
            attempt.record.note(f"redemptions: {error}")
        else:
            mark_late(late)
    asked = Days(arguments.start, arguments.end)
    reported = wormhole_source.redemptions(spark, context.work.settings, section, asked)
    if reported is not None:
        chains = load_reference(section.reference).chains
        query = reported_redemptions(
            [number for number, chain in chains.items() if chain.family == "evm"],
            datetime.now(UTC),
        )
        given = {
            **transfers.datasets,
            **days.frames({REPORTED: reported}, {REPORTED: REPORTED_SIDE}).datasets,
            KEPT: cache.read(arguments.start, arguments.end),
        }
        cache.add(days.results({"news": query}, {"news": REDEMPTIONS.arrow}, given)["news"])
    Redemptions(nodes, cache, again=again).ask(
        days, transfers.dataset(SENT), (arguments.start, arguments.end)
    )


def _ask_custody(
    context: StepContext, attempt: Attempt, days: DayLanding, nodes: Mapping[int, ChainRpc]
) -> None:
    """Store what the bridges held at the ends of days that were carried before; ``carry`` asks of others."""
    cache = answer_cache(context.spark, attempt, TOKEN_CUSTODY, attempt.record.note)
    Custody(nodes, cache).ask(
        days, days.rows(TVL_DAILY.name), (context.arguments.start, context.arguments.end)
    )
