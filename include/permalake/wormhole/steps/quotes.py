"""Quotes, as a step reads, stores and corrects them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial

from permalake.config.services import window_days
from permalake.engine.rows import Relation
from permalake.lake import Attempt, CarryAttempt
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.relations import count, dates_of, rows_where
from permalake.pipeline.side_rows import Replacement, add_or_replace
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.enrich.asked_prices import AskedPrices
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.quotes import Asking
from permalake.wormhole.tables.used_quotes import (
    ANOTHER_COIN,
    STORED,
    USED,
    corrections,
    former_price,
    used_quotes,
)

_CORRECTED = "corrected_quotes"


def asking(context: StepContext, *, again: bool) -> Asking:
    """Return how a run asks for prices; ``again``: a run that fills in."""
    return Asking(again=again, anew=context.arguments.force, stored=context.arguments.stored)


def price_cache(
    context: StepContext, attempt: Attempt | CarryAttempt, remark: Callable[[str], None]
) -> PriceCache:
    """Return the access of an attempt to ``token_prices``."""
    return PriceCache(
        quotes=lambda first, last: attempt.staged.rows(TOKEN_PRICES.name, first, last).scan(),
        keep=lambda quotes: store_quotes(context, attempt, quotes, remark),
        asked=partial(AskedPrices, context.work.database),
        note=remark,
    )


def store_quotes(
    context: StepContext, attempt: Attempt | CarryAttempt, quotes: Relation, remark: Callable[[str], None]
) -> int:
    """Store new rows of ``token_prices``; return how many are new.

    A row replaces the stored one of its key that is a quote of another coin: the token list named that one
    before. Other published days that may have used it become stale.
    """
    former = former_price("old", datetime.now(UTC))
    added, replaced = add_or_replace(
        attempt, quotes, TOKEN_PRICES, context.spark, Replacement(ANOTHER_COIN, former)
    )
    if replaced:
        text = (
            "prices: stored quotes of other coins replaced, as the token list names another coin now: days "
            f"{min(replaced)} to {max(replaced)}"
        )
        _mark_stale(context, attempt, replaced, text)
        remark(text)
    return added


def store_used(
    context: StepContext,
    attempt: Attempt | CarryAttempt,
    landing: DayLanding,
    quotes: Sequence[Relation],
    remark: Callable[[str], None],
) -> int:
    """Store the quotes that serve; return how many are new. A forced run corrects stored ones that differ.

    ``landing`` is the attempt's, ``quotes`` have the columns of ``QUOTE``.
    """
    given = {f"quotes_{number}": rows for number, rows in enumerate(quotes)}
    now = datetime.now(UTC)
    used = landing.results({USED: used_quotes(list(given), now)}, {USED: TOKEN_PRICES.arrow}, given)[USED]
    added = store_quotes(context, attempt, used, remark)
    if context.arguments.force:
        _correct(context, attempt, landing, used, remark)
    return added


def _correct(
    context: StepContext,
    attempt: Attempt | CarryAttempt,
    landing: DayLanding,
    used: Relation,
    remark: Callable[[str], None],
) -> None:
    if not (quoted := dates_of(used)):
        return
    given = {USED: used, STORED: attempt.staged.rows(TOKEN_PRICES.name, min(quoted), max(quoted)).scan()}
    query = corrections(datetime.now(UTC))
    rows = landing.results({_CORRECTED: query}, {_CORRECTED: TOKEN_PRICES.arrow}, given)[_CORRECTED]
    example = next(rows_where(rows), None)
    if example is None:
        return
    was, now = (f"{example[name].normalize():f}" for name in ("former_price_usd", "price_usd"))
    token = f"{example['origin_chain']}:{example['origin_address']}"
    text = (
        f"prices: stored quotes corrected: {count(rows)} (former_price_usd in token_prices), such as "
        f"{example['provider']}'s of {token} at {example['quote_time']:%Y-%m-%dT%H:%M:%SZ}: "
        f"{was} before, {now} now"
    )
    _mark_stale(context, attempt, dates_of(rows), text)
    add_or_replace(attempt, rows, TOKEN_PRICES, context.spark, Replacement())
    remark(text)


def _mark_stale(
    context: StepContext, attempt: Attempt | CarryAttempt, quoted: Iterable[date], reason: str
) -> None:
    """Mark the days outside the attempt that may have used a quote of these days."""
    reach = window_days(context.work.settings.prices.window_hours)
    days = {day + timedelta(apart) for day in quoted for apart in range(-reach, reach + 1)}
    others = sorted(day for day in days if not attempt.start <= day <= attempt.end)
    context.work.builds.mark_stale(context.arguments.network, others, reason)
