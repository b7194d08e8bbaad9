"""Views of transfers on their way: which are in flight, and how long others took."""

from __future__ import annotations

from permalake.contracts.schema import DATE, ROW_KEY, Column
from permalake.contracts.views import LakeView
from permalake.wormhole.contracts.analyst_views import chain_columns, with_names

_BRIDGES = ("token", "nft")


_ROUTE = ("emitter_chain", "target_chain")
_CORRIDOR = (
    *chain_columns("emitter_chain", "Chain that sent"),
    *chain_columns("target_chain", "Chain that receives"),
)
_TABLES = ("message_publication", "token_transfer_payload", "nft_transfer_payload", "redemptions")

# A completed answer is final; the one that tells more counts, then the newer.
_STATES = """
    SELECT date, row_key, status, target_tx_id, redeemed_at, asked_at FROM {network}.redemptions
    WHERE date <= CAST(as_of AS DATE)
    QUALIFY row_number() OVER (PARTITION BY date, row_key ORDER BY status <> 'completed',
        redeemed_at IS NULL, asked_at DESC, source) = 1
"""
_TRANSFERS = f"""
    SELECT sent.date AS date, sent.row_key AS row_key, bridge, emitter_chain, target_chain, timestamp,
        status, target_tx_id, asked_at,
        CASE WHEN status = 'completed' THEN epoch(redeemed_at) - epoch(timestamp) END AS seconds
    FROM (
        SELECT date, row_key, 'token' AS bridge, target_chain FROM {{network}}.token_transfer_payload
        UNION ALL SELECT date, row_key, 'nft', target_chain FROM {{network}}.nft_transfer_payload
    ) AS sent
    JOIN {{network}}.message_publication AS events
        ON events.date = sent.date AND events.row_key = sent.row_key
    LEFT JOIN ({_STATES}) AS states ON states.date = sent.date AND states.row_key = sent.row_key
    WHERE sent.date <= CAST(as_of AS DATE)
"""  # noqa: S608

TRANSFERS_IN_FLIGHT = LakeView(
    "transfers_in_flight",
    "wormhole",
    "Token and NFT transfers that were not redeemed when the source or the target chain was last asked.",
    (
        DATE,
        Column("row_key", "string", "EmitterChain:EmitterAddress:Sequence (v2 key).", pattern=ROW_KEY),
        Column("bridge", "string", "token or nft.", values=_BRIDGES),
        *_CORRIDOR,
        Column("timestamp", "timestamptz", "Time in the VAA's body."),
        Column("status", "string", "in_flight; failed or unknown: what became of a try."),
        Column("target_tx_id", "string", "Transaction of that try.", required=False),
        Column("asked_at", "timestamptz", "When this was told."),
    ),
    _TABLES,
    f"SELECT date, row_key, bridge, {with_names(*_ROUTE)}, timestamp, status, target_tx_id, asked_at "  # noqa: S608
    f"FROM ({_TRANSFERS}) WHERE status <> 'completed'",
    note="Transfers of which nobody was asked are not listed; redemption_times_daily counts them.",
    key=("row_key",),
)
REDEMPTION_TIMES = LakeView(
    "redemption_times_daily",
    "wormhole",
    "Token and NFT transfers per day and corridor: how many are redeemed, and how long after their message.",
    (
        DATE,
        *_CORRIDOR,
        Column("transfers", "long", "redeemed + in_flight + not_asked."),
        Column("redeemed", "long", "Transfers with a completed redemption."),
        Column("in_flight", "long", "Transfers that were not redeemed when asked."),
        Column("not_asked", "long", "Transfers of which neither an operation nor an RPC tells."),
        Column("timed", "long", "Redeemed transfers whose time of redemption is known."),
        Column(
            "median_seconds", "long", "Least time within which half of them were redeemed.", required=False
        ),
        Column("p90_seconds", "long", "Least time within which 90 % of them were redeemed.", required=False),
    ),
    _TABLES,
    f"SELECT date, {with_names(*_ROUTE)}, count(*) AS transfers, "  # noqa: S608
    "count(*) FILTER (status = 'completed') AS redeemed, "
    "count(*) FILTER (status <> 'completed') AS in_flight, count(*) FILTER (status IS NULL) AS not_asked, "
    "count(seconds) AS timed, CAST(quantile_disc(seconds, 0.5) AS BIGINT) AS median_seconds, "
    f"CAST(quantile_disc(seconds, 0.9) AS BIGINT) AS p90_seconds FROM ({_TRANSFERS}) GROUP BY ALL",
    note="date is the day of the transfer. A run with --only enrich asks again for what is in flight.",
    key=("emitter_chain", "target_chain"),
)
VIEWS = (TRANSFERS_IN_FLIGHT, REDEMPTION_TIMES)
