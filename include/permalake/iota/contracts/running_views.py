"""Views whose figures run on from day to day: supplies of native tokens.

They are computed from all published days when they are read, so a late or corrected day costs nothing.
"""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.iota.contracts.columns import TOKEN_ID

# An output that expired was its first owner's, whoever unlocked it. Integers have up to 256 bits.
_CHANGES = """
SELECT moved.date AS date, moved.token_id AS token_id, moved.transaction_id AS transaction_id,
    coalesce(created.address, moved.address) AS address,
    sum(CAST(CASE moved.is_spent WHEN 1 THEN '-' || moved.amount ELSE moved.amount END AS BIGNUM)) AS change
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
    FROM (SELECT date, token_id, address, sum(change) AS change FROM changes GROUP BY ALL)
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
            "Tokens in unspent outputs, as decimal text: what published days created less what they "
            "consumed, so it may be below zero where earlier days are missing.",
        ),
        Column("holders", "long", "Addresses that own such outputs, expired or not."),
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
VIEWS = (TOKEN_SUPPLY,)
