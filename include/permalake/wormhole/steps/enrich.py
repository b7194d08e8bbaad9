"""Step ``enrich_analytics`` of Wormhole: staged events → prices, chain details and the daily analytics."""

from __future__ import annotations

from functools import partial

from permalake.contracts.steps import StepResult
from permalake.lake import Attempt
from permalake.pipeline import jobs
from permalake.pipeline.jobs import StepContext
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import CHAIN_ANSWERS, MESSAGE_PUBLICATION, TOKEN_PRICES
from permalake.wormhole.enrich.asked_prices import AskedPrices
from permalake.wormhole.enrich.chains import AnswerCache, Chains
from permalake.wormhole.enrich.enriched_days import enriched
from permalake.wormhole.enrich.price_cache import LakeCache
from permalake.wormhole.enrich.price_providers import cross_check, providers
from permalake.wormhole.enrich.rpcs import rpcs


def run(context: StepContext) -> StepResult:
    """Stage prices, chain details and analytics of the days."""
    order = context.order
    context.report(f"enrich {order}: prices, chain details, analytics")
    with context.work.builds.resume_or_begin(order.network, order.start, order.end, order.run_id) as attempt:
        return _staged(context, attempt)


def _staged(context: StepContext, attempt: Attempt) -> StepResult:
    order, settings, spark = context.order, context.work.settings, context.spark
    cache = LakeCache(
        read=lambda session: attempt.table(session, TOKEN_PRICES.name),
        add=lambda quotes: attempt.append_new(quotes, TOKEN_PRICES),
        memory=partial(AskedPrices, context.work.database),
        remark=attempt.record.note,
    )
    # A run that starts here fills in: what is stored as "none" is requested again.
    again = MESSAGE_PUBLICATION.name not in attempt.staged.changed()
    answers = AnswerCache(
        read=lambda session: attempt.table(session, CHAIN_ANSWERS.name),
        add=lambda rows: attempt.append_new(rows, CHAIN_ANSWERS),
        remark=attempt.record.note,
    )
    waiting = context.work.carries.waiting(order.network)
    with Chains(rpcs(settings), answers, again=again, recheck=order.force) as chains:
        frames = enriched(
            spark,
            settings,
            partial(attempt.table, spark),
            order.start,
            order.end,
            sound_before=min(order.start, waiting.span[0]) if waiting else order.start,
            providers=providers(settings, cache, again),
            cross_check=cross_check(settings, cache, again),
            chains=chains,
        )
    quotes = attempt.append_new(frames.pop(TOKEN_PRICES.name), TOKEN_PRICES)
    jobs.stage(attempt, frames, WORMHOLE_TABLES)
    counted = jobs.counted(attempt, "token_transfer_details")
    context.report(f"enrich {order}: {counted}, {quotes} new quotes")
    return StepResult()
