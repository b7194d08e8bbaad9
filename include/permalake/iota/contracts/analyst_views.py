"""Views in analysts' words: amounts in coins, account statements, tags as text."""

from __future__ import annotations

from permalake.contracts.schema import BECH32, DATE, Column
from permalake.contracts.views import LakeView

_DECIMALS = "the base token has six decimals"


def _coins(name: str, doc: str) -> tuple[Column, Column]:
    """Return the columns of an amount in coins and in base tokens."""
    return (
        Column(name, "decimal(38,6)", f"{doc} (coins: {_DECIMALS})."),
        Column(f"{name}_base", "long", f"{doc} (base tokens)."),
    )


def _both(*names: str) -> str:
    return ", ".join(
        f"CAST({name} * CAST(0.000001 AS DECIMAL(7,6)) AS DECIMAL(38,6)) AS {name}, "
        f"CAST({name} AS BIGINT) AS {name}_base"
        for name in names
    )


# A consumed output leaves the address that it was created for, as in address_balances, whoever unlocked it.
# Within a milestone the order of transactions is not known: balances are those after the milestone.
_STATEMENT = f"""
WITH moves AS (
    SELECT coalesce(created.address, moved.address) AS address, moved.milestone_index AS milestone_index,
        moved.ms_timestamp AS ms_timestamp, moved.transaction_id AS transaction_id,
        coalesce(moved.transaction_id, moved.output_id) AS cause,
        CAST(sum(CASE moved.is_spent WHEN 0 THEN moved.amount ELSE 0 END) AS BIGINT) AS received,
        CAST(sum(CASE moved.is_spent WHEN 1 THEN moved.amount ELSE 0 END) AS BIGINT) AS sent,
        CAST(sum(CASE WHEN created.output_id IS NULL THEN moved.amount ELSE 0 END) AS BIGINT) AS from_before,
        moved.date AS date
    FROM {{network}}.ledger_updates AS moved
    LEFT JOIN (SELECT output_id, address FROM {{network}}.ledger_updates WHERE is_spent = 0) AS created
        ON created.output_id = moved.output_id
    WHERE moved.date <= CAST(as_of AS DATE)
    GROUP BY ALL
),
running AS (
    SELECT *, CAST(sum(received - sent) OVER (PARTITION BY address ORDER BY milestone_index) AS BIGINT)
        AS change
    FROM moves
),
opened AS (
    SELECT *, CAST(sum(from_before) OVER (PARTITION BY address) AS BIGINT) AS opening FROM running
),
parties AS (
    SELECT transaction_id, list_sort(list(DISTINCT address)) AS addresses FROM {{network}}.ledger_updates
    WHERE transaction_id IS NOT NULL AND date <= CAST(as_of AS DATE) GROUP BY transaction_id
),
tokens AS (
    SELECT address, transaction_id,
        string_agg(token_id || '=' || CAST(change AS VARCHAR), ' ' ORDER BY token_id) AS native_tokens
    FROM (
        SELECT coalesce(created.address, moved.address) AS address, moved.transaction_id AS transaction_id,
            moved.token_id AS token_id,
            sum(CAST(CASE moved.is_spent WHEN 1 THEN '-' || moved.amount ELSE moved.amount END AS BIGNUM))
                AS change
        FROM {{network}}.native_tokens AS moved
        LEFT JOIN (SELECT output_id, token_id, address FROM {{network}}.native_tokens WHERE is_spent = 0)
            AS created ON created.output_id = moved.output_id AND created.token_id = moved.token_id
        WHERE moved.date <= CAST(as_of AS DATE)
        GROUP BY ALL
    ) WHERE change <> CAST(0 AS BIGNUM) GROUP BY address, transaction_id
)
SELECT date, opened.address AS address, milestone_index, ms_timestamp, cause,
    opened.transaction_id AS transaction_id,
    {_both("amount", "received", "sent", "balance", "opening")},
    list_aggregate(list_filter(addresses, lambda party: party <> opened.address), 'string_agg', ' ')
        AS counterparties,
    native_tokens,
    (SELECT min(start_ms) FROM {{network}}.date_cache WHERE date <= CAST(as_of AS DATE)) AS since_milestone
FROM (SELECT *, received - sent AS amount, change + opening AS balance FROM opened) AS opened
LEFT JOIN parties ON parties.transaction_id = opened.transaction_id
LEFT JOIN tokens ON tokens.transaction_id = opened.transaction_id AND tokens.address = opened.address
"""  # noqa: S608

ACCOUNT_STATEMENT = LakeView(
    "account_statement",
    "iota",
    "The account statement of every address: a row per transaction or receipt that changed it, signed, with "
    "the balance after the milestone.",
    (
        DATE,
        Column("address", "string", "Address unlock condition or state controller.", pattern=BECH32),
        Column("milestone_index", "int", "Milestone of the change."),
        Column("ms_timestamp", "timestamptz", "Time of that milestone."),
        Column("cause", "string", "The transaction; of a receipt, the output that it created."),
        Column("transaction_id", "string", "The transaction; null for a receipt.", required=False),
        *_coins("amount", "What the address gained, below zero what it lost"),
        *_coins("received", "Outputs created for it"),
        *_coins("sent", "Its outputs consumed"),
        *_coins("balance", "Balance after the milestone, at least"),
        *_coins(
            "opening",
            "Outputs that it spent and whose creation the lake does not hold: it held them before its first "
            "row; part of every balance",
        ),
        Column(
            "counterparties",
            "string",
            "Other addresses that own its outputs or unlocked its inputs, separated by spaces; "
            "null where there are none.",
            required=False,
        ),
        Column(
            "native_tokens",
            "string",
            "Native tokens (TIP-18) that it gained, below zero what it lost, as TOKEN=AMOUNT in the token's "
            "smallest unit, separated by spaces; null where none moved.",
            required=False,
        ),
        Column("since_milestone", "int", "First milestone that the lake holds."),
    ),
    ("ledger_updates", "native_tokens", "date_cache"),
    _STATEMENT,
    note="Where the lake begins in the middle, outputs from before are known only once they are spent: a "
    "balance is at least the one that is told, since `since_milestone`. The last one is the sum of unspent "
    "outputs that the API and the page of the address tell.",
    key=("address", "milestone_index", "cause"),
    runs_on=True,
)
ADDRESS_FLOWS = LakeView(
    "address_flows_daily",
    "iota",
    "What each address sent and received in a day, over included transactions, in coins and base tokens.",
    (
        DATE,
        Column("address", "string", "Address.", pattern=BECH32),
        *_coins("sent", "Sum of the consumed outputs that it unlocked"),
        *_coins("received", "Sum of the created outputs that it owns"),
    ),
    ("address_analytics",),
    f"SELECT date, address, {_both('sent', 'received')} FROM ("  # noqa: S608
    "SELECT date, address, sum(sent_tokens) AS sent, sum(recv_tokens) AS received "
    "FROM {network}.address_analytics WHERE date <= CAST(as_of AS DATE) GROUP BY date, address)",
    note="Remainders and what an address sends to itself count, as in address_analytics.",
    key=("address",),
)
TAGS_DAILY = LakeView(
    "tags_daily",
    "iota",
    "Messages per day and tag, with the tag as text.",
    (
        DATE,
        Column("tag", "string", "The tag (hex)."),
        Column(
            "tag_text",
            "string",
            "The tag as text; null where its bytes are no UTF-8 or hold control characters.",
            required=False,
        ),
        Column("messages", "long", "Messages with the tag, whatever their inclusion state."),
    ),
    ("tags",),
    "SELECT date, tag, CASE WHEN NOT regexp_matches(text, '[[:cntrl:]]') THEN text END AS tag_text, messages "
    # DuckDB 1.5, which Superset brings along, fails on a TRY beside an aggregate.
    "FROM (SELECT date, tag, TRY(decode(unhex(tag))) AS text, messages "
    "FROM (SELECT date, tag, count(DISTINCT message_id) AS messages "
    "FROM {network}.tags WHERE date <= CAST(as_of AS DATE) GROUP BY date, tag))",
    key=("tag",),
)
VIEWS = (ACCOUNT_STATEMENT, ADDRESS_FLOWS, TAGS_DAILY)
