"""Scorecards: figures of the Wormhole days over 1, 7 and 30 days and all of them, as the explorer shows them.

They are computed from the published days when they are read. A sender is an address on the chain that sends,
a receiver one on the chain that receives; where its native form is not known, the transfer's 32 bytes.
"""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.wormhole.contracts.columns import NOTIONAL_SUM, SUMMED, TOTAL

PERIODS = {"1d": 1, "7d": 7, "30d": 30, "all": None}
"""Days of each period, which ends with the row's day; None: all published days until then."""

_LENGTHS = ", ".join(
    f"('{name}', {'NULL' if days is None else days} :: INT)" for name, days in PERIODS.items()
)
_PERIODS = f"(VALUES {_LENGTHS}) AS lengths(period, days)"
_TRANSFERS = """
    SELECT sent.date AS date, sent.row_key AS row_key,
        CAST(split_part(sent.row_key, ':', 1) AS INT) AS emitter_chain, target_chain,
        origin_chain, origin_address, origin_symbol AS symbol, notional_usd,
        split_part(sent.row_key, ':', 1) || ':' || sender_address AS sender,
        target_chain || ':' || coalesce(receiver_address, target_address) AS receiver
    FROM {network}.token_transfer_payload AS sent
    LEFT JOIN {network}.token_transfer_details AS details
        ON details.date = sent.date AND details.row_key = sent.row_key
    LEFT JOIN {network}.chain_details AS chain ON chain.date = sent.date AND chain.row_key = sent.row_key
    WHERE sent.date <= CAST(as_of AS DATE)
"""
# What applications_daily counts: the bridge's transfers, and those that applications move without it.
_APPLIED = """
    SELECT messages.date AS date, messages.app_id AS app_id,
        CASE WHEN is_listed = 1 THEN coalesce(sent.notional_usd, details.notional_usd) END AS notional_usd,
        coalesce(sender, split_part(messages.row_key, ':', 1) || ':' || moved.sender_address) AS sender,
        coalesce(
            moved.target_chain || ':' || coalesce(recipient_native_address, recipient_address), receiver
        ) AS receiver
    FROM {network}.application_messages AS messages
    LEFT JOIN transfers AS sent ON sent.date = messages.date AND sent.row_key = messages.row_key
    LEFT JOIN {network}.application_transfers AS moved
        ON moved.date = messages.date AND moved.row_key = messages.row_key
    LEFT JOIN {network}.application_transfer_details AS details
        ON details.date = messages.date AND details.row_key = messages.row_key
    WHERE messages.date <= CAST(as_of AS DATE) AND (sent.row_key IS NOT NULL OR in_token_transfers = 0)
"""
# A side counts in the periods that hold its last day: from that day on, until the next one.
_SIDES = f"""
    SELECT date, period, CAST(senders AS BIGINT) AS senders, CAST(receivers AS BIGINT) AS receivers FROM (
        SELECT date, period, is_day, sum(senders) OVER so_far AS senders,
            sum(receivers) OVER so_far AS receivers
        FROM (
            SELECT turn.date AS date, period, false AS is_day, sum(turn.senders) AS senders,
                sum(turn.receivers) AS receivers
            FROM (
                SELECT date, is_sender,
                    lead(date) OVER (PARTITION BY is_sender, side ORDER BY date) AS next_date
                FROM (
                    SELECT date, true AS is_sender, sender AS side FROM transfers WHERE sender IS NOT NULL
                    UNION SELECT date, false, receiver FROM transfers
                )
            ) AS sides CROSS JOIN {_PERIODS} CROSS JOIN LATERAL (VALUES
                (sides.date, is_sender :: INT, (NOT is_sender) :: INT),
                (least(sides.date + days, next_date), -(is_sender :: INT), -((NOT is_sender) :: INT))
            ) AS turn(date, senders, receivers)
            WHERE turn.date IS NOT NULL
            GROUP BY ALL
            UNION ALL SELECT day.date, period, true, 0, 0 FROM days AS day CROSS JOIN {_PERIODS}
        )
        WINDOW so_far AS (
            PARTITION BY period ORDER BY date RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    ) WHERE is_day
"""  # noqa: S608
_SCORECARDS = f"""
WITH transfers AS MATERIALIZED ({_TRANSFERS}),
days AS (
    SELECT date, sum(verified) AS messages FROM {{network}}.messages_daily
    WHERE date <= CAST(as_of AS DATE) GROUP BY date
),
sides AS ({_SIDES}),
sums AS (
    SELECT days.date AS date, messages, transfers, valued, dollars, fractions, nfts FROM days
    LEFT JOIN (
        SELECT date, count(*) AS transfers, count(notional_usd) AS valued, {SUMMED}
        FROM transfers GROUP BY date
    ) AS sent
        ON sent.date = days.date
    LEFT JOIN (SELECT date, count(*) AS nfts FROM {{network}}.nft_transfer_payload GROUP BY date) AS nfts
        ON nfts.date = days.date
),
running AS (
    SELECT sums.date AS date, lengths.period AS period, sum(other.messages) AS messages,
        sum(other.transfers) AS transfers, sum(other.valued) AS valued, sum(other.dollars) AS dollars,
        sum(other.fractions) AS fractions, sum(other.nfts) AS nfts
    FROM sums CROSS JOIN {_PERIODS} JOIN sums AS other
        ON other.date <= sums.date AND (lengths.days IS NULL OR other.date > sums.date - lengths.days)
    GROUP BY ALL
)
SELECT running.date AS date, running.period AS period, CAST(messages AS BIGINT) AS messages,
    CAST(coalesce(transfers, 0) AS BIGINT) AS transfers, CAST(coalesce(valued, 0) AS BIGINT) AS valued,
    {TOTAL}, CASE WHEN senders > 0 OR coalesce(transfers, 0) = 0 THEN senders END AS senders, receivers,
    CAST(coalesce(nfts, 0) AS BIGINT) AS nft_transfers
FROM running JOIN sides ON sides.date = running.date AND sides.period = running.period
"""  # noqa: S608
_FIGURES = (
    f"any_value(last) AS date, period, count(*) AS transfers, count(notional_usd) AS valued, {SUMMED}, "
    "nullif(count(DISTINCT sender), 0) AS senders, count(DISTINCT receiver) AS receivers"
)
_RANKED = f"""
WITH transfers AS ({_TRANSFERS}),
applied AS ({_APPLIED}),
today AS (
    SELECT coalesce(
        max(date) FILTER (CAST(as_of AS DATE) < DATE '9999-12-31' OR date <= current_date), max(date)
    ) AS last
    FROM {{network}}.messages_daily WHERE date <= CAST(as_of AS DATE)
),
periods AS (SELECT last, period, coalesce(last - days, DATE '0001-01-01') AS before FROM today, {_PERIODS})
SELECT date, period,
    CASE WHEN app_id IS NOT NULL THEN 'application' WHEN target_chain IS NOT NULL THEN 'corridor'
        WHEN emitter_chain IS NOT NULL THEN 'chain' WHEN origin_address IS NOT NULL THEN 'token'
        ELSE 'symbol' END AS dimension,
    emitter_chain, target_chain, origin_chain, origin_address, symbol, app_id, transfers, valued, {TOTAL},
    senders, receivers
FROM (
    SELECT {_FIGURES}, emitter_chain, target_chain, origin_chain, origin_address,
        CASE WHEN grouping(origin_address) = 0 THEN max(transfers.symbol) ELSE transfers.symbol END AS symbol
    FROM transfers JOIN periods ON transfers.date > before AND transfers.date <= last
    GROUP BY GROUPING SETS (
        (period, emitter_chain), (period, emitter_chain, target_chain),
        (period, origin_chain, origin_address), (period, transfers.symbol)
    )
    UNION ALL BY NAME
    SELECT {_FIGURES}, app_id
    FROM applied JOIN periods ON applied.date > before AND applied.date <= last GROUP BY period, app_id
)
"""  # noqa: S608
_VALUED = Column("valued", "long", "Those with a value: notional_usd is the sum of these.")
_PERIOD = Column("period", "string", "1d, 7d, 30d or all: the days that end with the date.")
_SIDE_COLUMNS = (
    Column(
        "senders",
        "long",
        "Distinct senders of token transfers, as far as they are known; null where none of them is.",
        required=False,
    ),
    Column("receivers", "long", "Distinct receivers of token transfers."),
)


def _chain(name: str, doc: str) -> Column:
    return Column(name, "int", f"{doc} (Wormhole chain id); null in other dimensions.", required=False)


SCORECARDS = LakeView(
    "scorecards",
    "wormhole",
    "Messages, transfers, volume and who took part, on each published day and in the days before it.",
    (
        DATE,
        _PERIOD,
        Column("messages", "long", "Published VAAs."),
        Column("transfers", "long", "Token transfers."),
        _VALUED,
        NOTIONAL_SUM,
        *_SIDE_COLUMNS,
        Column("nft_transfers", "long", "NFT transfers."),
    ),
    (
        *("messages_daily", "token_transfer_payload", "token_transfer_details"),
        *("chain_details", "nft_transfer_payload"),
    ),
    _SCORECARDS,
    note="Days of a period that are not published count nothing.",
    runs_on=True,
)
SCORECARDS_BY = LakeView(
    "scorecards_by",
    "wormhole",
    "Token transfers of the last published real day and the days before it, by sending chain, corridor, "
    "token, symbol and application.",
    (
        DATE,
        _PERIOD,
        Column(
            "dimension",
            "string",
            "What a row stands for: chain (that sends), corridor, token, symbol (all its tokens), or "
            "application.",
            values=("chain", "corridor", "token", "symbol", "application"),
        ),
        _chain("emitter_chain", "Chain that sends"),
        _chain("target_chain", "Chain that receives"),
        _chain("origin_chain", "The token's own chain"),
        Column(
            "origin_address",
            "string",
            "The token on its own chain (hex); null in other dimensions.",
            required=False,
        ),
        Column(
            "symbol",
            "string",
            "Symbol; of a token for reading only. Null where none is known, and in other dimensions.",
            required=False,
        ),
        Column(
            "app_id",
            "string",
            "Application as Wormholescan names it, or UNKNOWN; null in other dimensions.",
            required=False,
        ),
        Column("transfers", "long", "Token transfers."),
        _VALUED,
        NOTIONAL_SUM,
        *_SIDE_COLUMNS,
    ),
    (
        *("messages_daily", "token_transfer_payload", "token_transfer_details", "chain_details"),
        *("application_messages", "application_transfers", "application_transfer_details"),
    ),
    _RANKED,
    note="scorecards_by(DATE '…') tells another day's; synthetic days count there, or where no other is. "
    "Rows of one dimension together count each transfer once. A symbol is no identity: tokens of one symbol "
    "may have nothing in common. Applications count what applications_daily does: also transfers that the "
    "token bridge has no part in, and the value of listed contracts alone. Their receivers are those that "
    "the application's payload names.",
    runs_on=True,
)
EMITTERS = LakeView(
    "emitter_totals",
    "wormhole",
    "VAAs per day and emitter, with the sequences that they span.",
    (
        DATE,
        Column("emitter_chain", "int", "Chain of the emitter (Wormhole chain id)."),
        Column("emitter_address", "string", "The emitter (32 bytes, hex)."),
        Column("messages", "long", "Published VAAs."),
        Column("first_sequence", "decimal(20,0)", "Lowest sequence."),
        Column("last_sequence", "decimal(20,0)", "Highest sequence."),
    ),
    ("message_publication",),
    "SELECT date, emitter_chain, emitter_address, count(*) AS messages, min(sequence) AS first_sequence, "
    "max(sequence) AS last_sequence FROM {network}.message_publication WHERE date <= CAST(as_of AS DATE) "
    "GROUP BY date, emitter_chain, emitter_address",
)
NFT_TRANSFERS = LakeView(
    "nft_transfers_daily",
    "wormhole",
    "NFT transfers per day, route and collection.",
    (
        DATE,
        Column("emitter_chain", "int", "Chain that sent (Wormhole chain id)."),
        Column("target_chain", "int", "Chain that received (Wormhole chain id)."),
        Column("origin_chain", "int", "The collection's own chain (Wormhole chain id)."),
        Column("origin_address", "string", "The collection on its own chain (32 bytes, hex)."),
        Column("transfers", "long", "NFT transfers."),
    ),
    ("nft_transfer_payload",),
    "SELECT date, CAST(split_part(row_key, ':', 1) AS INT) AS emitter_chain, target_chain, origin_chain, "
    "origin_address, count(*) AS transfers FROM {network}.nft_transfer_payload "
    "WHERE date <= CAST(as_of AS DATE) "
    "GROUP BY date, split_part(row_key, ':', 1), target_chain, origin_chain, origin_address",
)
FLOWS_HOURLY = LakeView(
    "flows_hourly",
    "wormhole",
    "Token transfers per hour, route and token.",
    (
        DATE,
        Column("hour", "int", "Hour of the VAA's timestamp (UTC), 0 to 23."),
        Column("emitter_chain", "int", "Chain that sent (Wormhole chain id)."),
        Column("target_chain", "int", "Chain that received (Wormhole chain id)."),
        Column("origin_chain", "int", "The token's own chain (Wormhole chain id)."),
        Column("origin_address", "string", "The token on its own chain (32 bytes, hex)."),
        Column("symbol", "string", "Symbol of the token, for reading only.", required=False),
        Column("transfers", "long", "Number of transfers."),
        Column(
            "amount",
            "decimal(38,8)",
            "Sum of amounts; null when none is known, and where one or the sum is beyond this type.",
            False,
        ),
        NOTIONAL_SUM,
    ),
    ("message_publication", "token_transfer_payload", "token_transfer_details"),
    f"SELECT date, hour, emitter_chain, target_chain, origin_chain, origin_address, symbol, transfers, "  # noqa: S608
    f"CASE WHEN large = 0 THEN amount END AS amount, {TOTAL} FROM ("
    "SELECT sent.date AS date, CAST(extract(hour FROM timestamp AT TIME ZONE 'UTC') AS INT) AS hour, "
    "emitter_chain, target_chain, origin_chain, origin_address, max(origin_symbol) AS symbol, "
    "count(*) AS transfers, sum(TRY_CAST(amount AS DECIMAL(30,8))) AS amount, "
    "count(amount) - count(TRY_CAST(amount AS DECIMAL(30,8))) AS large, "
    f"{SUMMED} FROM (SELECT date, row_key, target_chain, origin_chain, origin_address "
    "FROM {network}.token_transfer_payload WHERE date <= CAST(as_of AS DATE)) AS sent "
    "JOIN {network}.message_publication AS published "
    "ON published.date = sent.date AND published.row_key = sent.row_key "
    "LEFT JOIN {network}.token_transfer_details AS details "
    "ON details.date = sent.date AND details.row_key = sent.row_key "
    "GROUP BY sent.date, hour, emitter_chain, target_chain, origin_chain, origin_address)",
)
VIEWS = (FLOWS_HOURLY, SCORECARDS, SCORECARDS_BY, EMITTERS, NFT_TRANSFERS)
