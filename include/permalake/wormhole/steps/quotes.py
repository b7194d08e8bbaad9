"""Quotes, as a step reads, stores and corrects them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.config.services import window_days
from permalake.engine.rows import Relation
from permalake.lake import Attempt, CarryAttempt
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.jobs import StepContext
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.enrich.asked_prices import AskedPrices
from permalake.wormhole.enrich.price_cache import LakeCache
from permalake.wormhole.enrich.quotes import Asking
from permalake.wormhole.tables.used_quotes import corrections, used_quotes

_USED = "used_quotes"


def asking(context: StepContext, *, again: bool) -> Asking:
    """Return how a run asks for prices; ``again``: a run that fills in."""
    return Asking(again=again, anew=context.arguments.force, stored=context.arguments.stored)


def price_cache(
    context: StepContext, attempt: Attempt | CarryAttempt, remark: Callable[[str], None]
) -> LakeCache:
    """Return the access of an attempt to ``token_prices``."""
    return LakeCache(
        read=lambda first, last: attempt.files.rows(TOKEN_PRICES.name, first, last).scan(),
        add=lambda quotes: attempt.append_new(context.spark.createDataFrame(quotes), TOKEN_PRICES),
        memory=partial(AskedPrices, context.work.database),
        remark=remark,
    )


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
    now = datetime.now(UTC).replace(tzinfo=None)
    rows = landing.landed({_USED: used_quotes(list(given), now)}, {_USED: TOKEN_PRICES.arrow}, given)
    used = rows.frame(context.spark, _USED)
    count = attempt.append_new(used, TOKEN_PRICES)
    if context.arguments.force:
        _correct(context, attempt, used, remark)
    return count


def _correct(
    context: StepContext,
    attempt: Attempt | CarryAttempt,
    used: DataFrame,
    remark: Callable[[str], None],
) -> None:
    rows = corrections(used, attempt.table(context.spark, TOKEN_PRICES.name)).localCheckpoint()
    dates = {row["date"] for row in rows.select("date").distinct().collect()}
    example = rows.withColumn("at", F.date_format("quote_time", "yyyy-MM-dd'T'HH:mm:ss'Z'")).first()
    if example is None:
        return
    was, now = (f"{example[name].normalize():f}" for name in ("former_price_usd", "price_usd"))
    token = f"{example['origin_chain']}:{example['origin_address']}"
    text = (
        f"prices: stored quotes corrected: {rows.count()} (former_price_usd in token_prices), such as "
        f"{example['provider']}'s of {token} at {example['at']}: {was} before, {now} now"
    )
    reach = window_days(context.work.settings.prices.window_hours)
    days = {date + timedelta(days) for date in dates for days in range(-reach, reach + 1)}
    others = sorted(day for day in days if not attempt.start <= day <= attempt.end)
    context.work.builds.mark_stale(context.arguments.network, others, text)
    attempt.append_new(rows, TOKEN_PRICES, correct=True)
    remark(text)
