"""Transfers → ``tvl_daily``: the bridges' balance of each token at each day's end.

Sent out of the token's own chain less sent back to it, cumulative. A transfer between two other chains moves
nothing in or out. Every day with messages carries the balance of every token met so far, so that the latest
day before a range is the whole running state, and the cost of a day does not grow with history.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from permalake.wormhole.tables.amount_queries import amount_sum
from permalake.wormhole.tables.exact_amounts import LIMB_NAMES, joined, limbs, notional

TOKEN = ("origin_chain", "origin_address")
FLOWS = f"""
WITH moved AS (
    SELECT t.date, t.origin_chain, t.origin_address, details.amount,
        published.emitter_chain = t.origin_chain AS is_sent,
        t.target_chain = t.origin_chain AS is_returned
    FROM token_transfer_payload AS t
    JOIN message_publication AS published ON t.date = published.date AND t.row_key = published.row_key
    JOIN token_transfer_details AS details ON t.date = details.date AND t.row_key = details.row_key
)
SELECT date, origin_chain, origin_address,
    {amount_sum("CASE WHEN is_sent THEN amount END")} AS sent,
    {amount_sum("CASE WHEN is_returned THEN amount END")} AS returned
FROM moved WHERE is_sent <> is_returned AND amount IS NOT NULL
GROUP BY date, origin_chain, origin_address
"""
"""What left each token's own chain on a day, and what came back to it; null: nothing."""
FLOW = pa.schema(
    [
        *(("date", pa.date32()), ("origin_chain", pa.int32()), ("origin_address", pa.string())),
        *(("sent", pa.string()), ("returned", pa.string())),
    ]
)


DATES = "SELECT DISTINCT date FROM message_publication"
DATE = pa.schema([("date", pa.date32())])


def balances(flows: DataFrame, state: DataFrame, days: DataFrame) -> DataFrame:
    """Return the balance at each day's end of each token whose amount is known.

    Columns: date, origin_chain, origin_address, amount, ``at`` (end of the day). ``flows`` are rows of the
    query :data:`FLOWS`, ``state`` the ``tvl_daily`` rows of the latest day before the range, ``days`` the
    range's dates with messages.
    """
    sent, returned = (limbs(F.col(name)) for name in ("sent", "returned"))
    flows = flows.select("date", *TOKEN, *map(_less, sent, returned, LIMB_NAMES))
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


def as_signed(held: DataFrame, signed: DataFrame) -> DataFrame:
    """Return the rows of ``tvl_daily`` with the values of ``signed`` rows of the same balance."""
    same = ["date", *TOKEN, "amount"]
    return held.join(signed.select(*same, "notional_usd"), same, "left").select(*same, "notional_usd")


def _less(sent: Column, returned: Column, limb: str) -> Column:
    return (F.coalesce(sent, F.lit(0)) - F.coalesce(returned, F.lit(0))).cast("decimal(38,0)").alias(limb)


def _renamed(prefix: str) -> list[Column]:
    return [F.col(limb).alias(f"{prefix}{limb}") for limb in LIMB_NAMES]


def _plus(flow: Column, held: Column) -> Column:
    return F.coalesce(flow + F.coalesce(held, F.lit(0)), held)
