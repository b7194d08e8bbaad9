"""Views whose figures run on from day to day: supplies of native tokens, who is active, who owns how much.

They are computed from all published days when they are read, so a late or corrected day costs nothing.
"""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.iota.contracts.columns import TOKEN_ID

WINDOWS = (1, 7, 30)
"""Lengths in days of the periods in which addresses are counted."""

# An output that expired was its first owner's, whoever unlocked it. Integers have up to 256 bits. What was
# consumed and whose creation is not published was held before: only ``held`` leaves it out.
_CHANGES = """
SELECT moved.date AS date, moved.token_id AS token_id, moved.transaction_id AS transaction_id,
    coalesce(created.address, moved.address) AS address,
    sum(CAST(CASE moved.is_spent WHEN 1 THEN '-' || moved.amount ELSE moved.amount END AS BIGNUM)) AS change,
    coalesce(
        sum(CAST(CASE moved.is_spent WHEN 1 THEN '-' || moved.amount ELSE moved.amount END AS BIGNUM))
            FILTER (moved.is_spent = 0 OR created.output_id IS NOT NULL),
        CAST(0 AS BIGNUM)
    ) AS held
FROM {network}.native_tokens AS moved
LEFT JOIN (SELECT output_id, token_id, address FROM {network}.native_tokens WHERE is_spent = 0) AS created
    ON created.output_id = moved.output_id AND created.token_id = moved.token_id
WHERE moved.date <= CAST(as_of AS DATE)
GROUP BY ALL
"""
_TOKEN_SUPPLY = f"""
WITH changes AS MATERIALIZED ({_CHANGES}),
transfers AS (
    SELECT date, token_id, count(*) AS transfers FROM (
        SELECT date, token_id, transaction_id FROM changes GROUP BY ALL
        HAVING min(change) < CAST(0 AS BIGNUM) AND max(change) > CAST(0 AS BIGNUM)
    ) GROUP BY date, token_id
),
balances AS (
    SELECT date, token_id, change,
        sum(change) OVER (PARTITION BY token_id, address ORDER BY date) AS balance
    FROM (SELECT date, token_id, address, sum(held) AS change FROM changes GROUP BY ALL)
),
moved AS (
    SELECT date, token_id, sum(change) AS change,
        count_if(balance > CAST(0 AS BIGNUM))
            - count_if(balance - change > CAST(0 AS BIGNUM)) AS new_holders
    FROM balances GROUP BY date, token_id
),
schemes AS (
    SELECT date, foundry_id AS token_id, max(CAST(minted_tokens AS BIGNUM)) AS minted,
        max(CAST(melted_tokens AS BIGNUM)) AS melted
    FROM {{network}}.foundry_outputs WHERE minted_tokens IS NOT NULL AND date <= CAST(as_of AS DATE)
    GROUP BY date, foundry_id
)
SELECT date, token_id,
    CAST(max(minted) OVER so_far AS VARCHAR) AS minted,
    CAST(max(melted) OVER so_far AS VARCHAR) AS melted,
    CAST(coalesce(sum(change) OVER so_far, CAST(0 AS BIGNUM)) AS VARCHAR) AS circulating,
    CAST(coalesce(sum(new_holders) OVER so_far, 0) AS BIGINT) AS holders,
    coalesce(transfers, 0) AS transfers
FROM moved FULL JOIN schemes USING (date, token_id) LEFT JOIN transfers USING (date, token_id)
WINDOW so_far AS (PARTITION BY token_id ORDER BY date)
"""  # noqa: S608
# An address counts in the windows that hold its last active day: from that day on, until the next one.
_ROLLING = f"""
WITH active AS (
    SELECT date, address FROM {{network}}.address_analytics WHERE date <= CAST(as_of AS DATE)
    GROUP BY date, address
),
lasting AS (
    SELECT date, lead(date) OVER by_address AS next_date, lag(date) OVER by_address IS NULL AS is_first
    FROM active WINDOW by_address AS (PARTITION BY address ORDER BY date)
),
turns AS (
    SELECT days, turn.date AS date, sum(turn.active) AS active, sum(turn.new) AS new
    FROM lasting CROSS JOIN (SELECT unnest({list(WINDOWS)}) AS days) CROSS JOIN LATERAL (VALUES
        (date, 1, is_first :: INT),
        (least(date + days, coalesce(next_date, date + days)), -1, 0),
        (date + days, 0, -(is_first :: INT))
    ) AS turn(date, active, new)
    GROUP BY ALL
)
SELECT date, days,
    CAST(active AS BIGINT) AS active_addresses,
    CAST(new AS BIGINT) AS new_addresses,
    CAST(active - new AS BIGINT) AS returning_addresses
FROM (
    SELECT date, days, sum(active) OVER so_far AS active, sum(new) OVER so_far AS new, is_day
    FROM (
        SELECT date, days, active, new, false AS is_day FROM turns UNION ALL
        SELECT date, unnest({list(WINDOWS)}), 0, 0, true FROM {{network}}.date_cache
        WHERE date <= CAST(as_of AS DATE)
    )
    WINDOW so_far AS (PARTITION BY days ORDER BY date RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
) WHERE is_day
"""  # noqa: S608
_CONCENTRATION = """
WITH day AS (
    SELECT date, checkpoint, since_milestone FROM {network}.ledger_totals WHERE date <= CAST(as_of AS DATE)
    ORDER BY date DESC LIMIT 1
),
balances AS (
    SELECT any_value(day.date) AS date, any_value(day.since_milestone) AS since_milestone,
        arg_max(balance, held.date) AS balance
    FROM {network}.address_balances AS held JOIN day ON held.date BETWEEN day.checkpoint AND day.date
    GROUP BY address
),
ranked AS (
    SELECT date, since_milestone, balance, row_number() OVER (ORDER BY balance DESC) AS rank
    FROM balances WHERE balance > 0
)
SELECT date, since_milestone, count(*) AS addresses, CAST(sum(balance) AS BIGINT) AS amount,
    (count(*) + 1) / count(*) - 2 * CAST(sum(rank * CAST(balance AS HUGEINT)) AS DOUBLE)
        / count(*) / CAST(sum(balance) AS DOUBLE) AS gini,
    coalesce(sum(balance) FILTER (rank <= 10), 0) / sum(balance) AS top_10_share,
    coalesce(sum(balance) FILTER (rank <= 100), 0) / sum(balance) AS top_100_share
FROM ranked GROUP BY date, since_milestone
"""

TOKEN_SUPPLY = LakeView(
    "token_supply_daily",
    "iota",
    "Supply, holders and transfers of native tokens at the ends of the days on which they moved or their "
    "foundry changed (TIP-18); supply and holders stay until the next such day.",
    (
        DATE,
        TOKEN_ID,
        Column(
            "minted",
            "string",
            "Tokens that the foundry had minted by its last state (u256 as decimal text); null where no "
            "published day has one.",
            required=False,
        ),
        Column(
            "melted",
            "string",
            "Tokens that it had melted by that state (u256 as decimal text); what the transaction melts that "
            "destroys the foundry is in no state.",
            required=False,
        ),
        Column(
            "circulating",
            "string",
            "Tokens in unspent outputs that published days created, as decimal text: all tokens where the "
            "days begin with the foundry, else at least that many.",
        ),
        Column("holders", "long", "Addresses that own such outputs, expired or not; at least, as above."),
        Column(
            "transfers",
            "long",
            "Included transactions of the day that moved tokens between addresses.",
        ),
    ),
    ("native_tokens", "foundry_outputs"),
    _TOKEN_SUPPLY,
    note="Tokens that were burned are minted, not melted, and in no output.",
    key=("token_id",),
    runs_on=True,
)
ROLLING_ADDRESSES = LakeView(
    "rolling_addresses",
    "iota",
    "Distinct addresses that sent or received on a day or shortly before it, and how many of them are new.",
    (
        DATE,
        Column("days", "int", "Length of the period, which ends with the date.", values=WINDOWS),
        Column("active_addresses", "long", "Distinct addresses that sent or received in the period."),
        Column("new_addresses", "long", "Those among them that no published day before the period has."),
        Column("returning_addresses", "long", "The others among them."),
    ),
    ("address_analytics", "date_cache"),
    _ROLLING,
    note="For each published day. Days of a period that are not published count nothing.",
    runs_on=True,
)
CONCENTRATION = LakeView(
    "concentration",
    "iota",
    "How unequal balances are at a day's end: concentration(DATE '…'), or concentration for the last day.",
    (
        DATE,
        Column(
            "since_milestone",
            "int",
            "First milestone whose changes balances count (see ledger_totals); null: all of them.",
            required=False,
        ),
        Column("addresses", "long", "Addresses with a balance above zero."),
        Column("amount", "long", "Sum of these balances (base tokens)."),
        Column(
            "gini",
            "double",
            "Gini coefficient: 0 where these balances are equal, near 1 where one has all.",
        ),
        Column("top_10_share", "double", "Share of the amount that the 10 largest balances hold."),
        Column("top_100_share", "double", "Share of the amount that the 100 largest balances hold."),
    ),
    ("ledger_totals", "address_balances"),
    _CONCENTRATION,
    note="One row, from the balances since the day's checkpoint.",
    key=(),
    runs_on=True,
)
VIEWS = (TOKEN_SUPPLY, ROLLING_ADDRESSES, CONCENTRATION)
