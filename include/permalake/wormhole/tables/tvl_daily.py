"""Transfers → ``tvl_daily``: the bridges' balance of each token at each day's end.

Sent out of the token's own chain less sent back to it, cumulative. A transfer between two other chains moves
nothing in or out. Every day with messages carries the balance of every token met so far, so that the latest
day before a range is the whole running state, and the cost of a day does not grow with history.
"""

from __future__ import annotations

import pyarrow as pa

from permalake.contracts.sql_text import same
from permalake.wormhole.tables.amount_queries import amount_sum, limbs
from permalake.wormhole.tables.exact_amounts import LIMB_NAMES

FLOWS, DATES, STATE, HELD, QUOTED, SIGNED = (
    "flows", "dates", "tvl_state", "held_tokens", "counting_quotes", "signed_values",
)  # fmt: skip
"""What the queries read: rows of the first two queries; rows of ``tvl_daily`` of the latest day before the
range; rows of :data:`BALANCES`; quotes at days' ends; rows of ``tvl_daily`` as a publisher signed them."""
_TOKEN = ("origin_chain", "origin_address")
FLOWS_QUERY = f"""
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
DATES_QUERY = "SELECT DISTINCT date FROM message_publication"


def _limbs(of: str, prefix: str = "") -> str:
    return ", ".join(f"{limb} AS {prefix}{name}" for limb, name in zip(limbs(of), LIMB_NAMES, strict=True))


def _net(name: str) -> str:
    return f"coalesce(sent_{name}, 0) - coalesce(returned_{name}, 0) AS {name}"


def _so_far(name: str) -> str:
    return f"coalesce(sum(flow.{name}) OVER so_far + coalesce(held.{name}, 0), held.{name}) AS {name}"


BALANCES = f"""
WITH parts AS (
    SELECT date, {", ".join(_TOKEN)}, {_limbs("sent", "sent_")}, {_limbs("returned", "returned_")}
    FROM {FLOWS}
), flow AS (
    SELECT date, {", ".join(_TOKEN)}, {", ".join(map(_net, LIMB_NAMES))} FROM parts
), held AS (
    SELECT {", ".join(_TOKEN)}, {_limbs("amount")} FROM {STATE}
), tokens AS (
    SELECT {", ".join(_TOKEN)} FROM flow UNION SELECT {", ".join(_TOKEN)} FROM held
), grid AS (
    SELECT dates.date, tokens.* FROM {DATES} CROSS JOIN tokens
), totals AS (
    SELECT grid.*, {", ".join(map(_so_far, LIMB_NAMES))}
    FROM grid LEFT JOIN flow ON {same("grid", "flow", "date", *_TOKEN)}
    LEFT JOIN held ON {same("grid", "held", *_TOKEN)}
    WINDOW so_far AS (PARTITION BY grid.origin_chain, grid.origin_address ORDER BY grid.date)
)
SELECT date, {", ".join(_TOKEN)}, joined_limbs({", ".join(LIMB_NAMES)}) AS amount,
    CAST(date + 1 AS TIMESTAMP) AS "at"
FROM totals WHERE {LIMB_NAMES[0]} IS NOT NULL
"""
"""Query of the balance at each day's end of each token whose amount is known; ``at``: the end of the day."""
BALANCE = pa.schema(
    [
        *(("date", pa.date32()), ("origin_chain", pa.int32()), ("origin_address", pa.string())),
        *(("amount", pa.string()), ("at", pa.timestamp("us", tz="UTC"))),
    ]
)
TVL_DAILY = f"""
SELECT held.date, {", ".join(f"held.{name}" for name in _TOKEN)}, held.amount,
    value_in_usd(held.amount, quote.price_usd) AS notional_usd
FROM {HELD} AS held LEFT JOIN {QUOTED} AS quote ON {same("held", "quote", *_TOKEN, "at")}
"""
"""Query of the rows of ``tvl_daily``: the balances at the quote nearest to the day's end."""
AS_SIGNED = f"""
SELECT held.date, {", ".join(f"held.{name}" for name in _TOKEN)}, held.amount, signed.notional_usd
FROM {HELD} AS held LEFT JOIN {SIGNED} AS signed ON {same("held", "signed", "date", *_TOKEN, "amount")}
"""
"""Query of the same with the values of signed rows of the same balance."""
