"""Transfers → ``tvl_daily``: the bridges' balance of each token at each day's end.

Sent out of the token's own chain less sent back to it, cumulative. A transfer between two other chains moves
nothing in or out. Every day with messages carries the balance of every token met so far, so that the latest
day before a range is the whole running state, and the cost of a day does not grow with history.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from permalake.wormhole.tables.exact_amounts import LIMB_NAMES, joined, limbs, notional

TOKEN = ("origin_chain", "origin_address")


def balances(known: DataFrame, state: DataFrame, days: DataFrame) -> DataFrame:
    """Return the balance at each day's end of each token whose amount is known.

    Columns: date, origin_chain, origin_address, amount, ``at`` (end of the day). ``known`` are the range's
    transfers (date, emitter_chain, target_chain, token, amount), ``state`` the ``tvl_daily`` rows of the
    latest day before the range, ``days`` the range's dates with messages.
    """
    flows = _flows(known).groupBy("date", *TOKEN).agg(*(F.sum(limb).alias(limb) for limb in LIMB_NAMES))
    held = state.select(*TOKEN, *limbs(F.col("amount"))).select(*TOKEN, *_renamed("held_"))
    tokens = flows.select(*TOKEN).union(held.select(*TOKEN)).distinct()
    grid = days.select("date").distinct().crossJoin(tokens).join(flows, ["date", *TOKEN], "left")
    so_far = Window.partitionBy(*TOKEN).orderBy("date")
    totals = grid.join(held, [*TOKEN], "left").select(
        "date",
        *TOKEN,
        *(_plus(F.sum(limb).over(so_far), F.col(f"held_{limb}")).alias(limb) for limb in LIMB_NAMES),
    )
    return totals.where(F.col(LIMB_NAMES[0]).isNotNull()).select(
        "date",
        *TOKEN,
        joined(*(F.col(limb) for limb in LIMB_NAMES)).alias("amount"),
        F.date_add("date", 1).cast("timestamp").alias("at"),
    )


def tvl_daily(held: DataFrame, priced: DataFrame) -> DataFrame:
    """Return the rows of ``tvl_daily``: the balances at the quote nearest to the day's end."""
    quoted = held.join(priced, [*TOKEN, "at"], "left")
    value = notional(F.col("amount"), F.col("price_usd")).alias("notional_usd")
    return quoted.select("date", *TOKEN, "amount", value)


def _flows(known: DataFrame) -> DataFrame:
    out = F.col("emitter_chain") == F.col("origin_chain")
    back = F.col("target_chain") == F.col("origin_chain")
    crossing = known.where((out != back) & F.col("amount").isNotNull())
    return crossing.select("date", *TOKEN, *limbs(F.col("amount"), F.when(out, 1).otherwise(-1)))


def _renamed(prefix: str) -> list[Column]:
    return [F.col(limb).alias(f"{prefix}{limb}") for limb in LIMB_NAMES]


def _plus(flow: Column, held: Column) -> Column:
    return F.coalesce(flow + F.coalesce(held, F.lit(0)), held)
