"""Transfers, and what operations tell of them → rows of ``redemptions``, as queries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import pyarrow as pa

from permalake.contracts.sql_text import alike, same
from permalake.wormhole.contracts.redemption_tables import (
    COMPLETED,
    EXPLORER,
    FAILED,
    IN_FLIGHT,
    REDEMPTIONS,
    RPC,
    UNKNOWN,
)
from permalake.wormhole.tables.chain_questions import among

_PRECEDENCE = (COMPLETED, FAILED, UNKNOWN, IN_FLIGHT)
"""As the explorer itself ranks what it learns of a redemption: a final word replaces a weaker one."""
_KEY = ("row_key", "date")
_TOLD = ("target_tx_id", "redeemed_at", "redeemer", "fee", "receiver_address", "token_address")
SENT, KEPT, NEW, REPORTED, UNTOLD = (
    "sent_transfers",
    "kept_redemptions",
    "new_rows",
    "reported_sides",
    "untold",
)
"""What the queries read: transfers, rows of ``redemptions``, new ones, and what operations tell."""
SENT_QUERY = """
WITH routes AS (
    SELECT date, row_key, target_chain, 'token' AS bridge FROM token_transfer_payload
    UNION ALL
    SELECT date, row_key, target_chain, 'nft' FROM nft_transfer_payload
)
SELECT t.row_key, t.date, target_chain, bridge, digest, epoch_us(published.timestamp) // 1000000 AS at
FROM routes AS t JOIN message_publication AS published
ON t.date = published.date AND t.row_key = published.row_key
"""
"""Query of token and NFT transfers."""
SENT_TRANSFER = pa.schema(
    [
        *(("row_key", pa.string()), ("date", pa.date32()), ("target_chain", pa.int32())),
        *(("bridge", pa.string()), ("digest", pa.string()), ("at", pa.int64())),
    ]
)
"""Columns of transfers; ``at``: unix seconds."""
REPORTED_SIDE = pa.schema(
    [
        *(("row_key", pa.string()), ("is_told", pa.bool_()), ("chain", pa.int32())),
        *((name, pa.string()) for name in ("status", "tx_id", "time", "sender", "fee")),
        *((name, pa.list_(pa.string())) for name in ("receivers", "tokens")),
    ]
)
"""Columns of what operations tell; ``is_told``: whether there is a ``targetChain``; receivers and tokens are
those of its balance changes."""


def reported_redemptions(evm_chains: Iterable[int], now: datetime) -> str:
    """Return the query of the news that operations tell ``now``, at most one per transfer.

    What is told of another chain than the transfer's target is left out. Of several operations of one
    transfer the one with the strongest status counts, of these the one that tells more.
    """
    more_first = ", ".join([*(f"{name} IS NULL" for name in _TOLD), *_TOLD])
    tx_id = _text("tx_id")
    on_evm = f"{among('target_chain', evm_chains)} AND regexp_matches({tx_id}, '^(0[xX])?[0-9a-fA-F]{{64}}$')"
    ranks = " ".join(f"WHEN '{status}' THEN {rank}" for rank, status in enumerate(_PRECEDENCE))
    return f"""
WITH mine AS (
    SELECT sent.row_key, sent.date, sent.target_chain,
        CASE WHEN NOT is_told THEN '{IN_FLIGHT}' WHEN status IN ('{COMPLETED}', '{FAILED}') THEN status
            ELSE '{UNKNOWN}' END AS status,
        CASE WHEN {on_evm} THEN '0x' || lower(right({tx_id}, 64)) ELSE {tx_id} END AS target_tx_id,
        {_moment("time")} AS redeemed_at, {_text("sender")} AS redeemer,
        {_decimal("fee")} AS fee, {_only("receivers")} AS receiver_address, {_only("tokens")} AS token_address
    FROM {REPORTED} AS reported JOIN {SENT} AS sent ON reported.row_key = sent.row_key
    WHERE NOT is_told OR reported.chain = sent.target_chain
), best AS (
    SELECT * FROM mine QUALIFY row_number() OVER (
        PARTITION BY row_key, date, target_chain ORDER BY CASE status {ranks} END, {more_first}
    ) = 1
), told AS (
    SELECT *, '{EXPLORER}' AS source, TIMESTAMP '{now}' AS asked_at FROM best
)
{_news("told")}
"""


def _news(rows: str) -> str:
    """Return the query of the rows that say something that no kept one of their transfer and source says."""
    columns = (name for name in REDEMPTIONS.names if name != "asked_at")
    return f"SELECT new.* FROM {rows} AS new ANTI JOIN {KEPT} AS old ON {alike('new', 'old', *columns)}"


def unsettled(chains: Iterable[int], *, again: bool) -> str:
    """Return the query of the transfers whose redemption one of these chains can tell more of than is known.

    Those without a completed redemption, or without its transaction where bridges log it. Unless ``again``,
    without those that their chain was asked about.
    """
    was_asked = "false" if again else f"source = '{RPC}'"
    return f"""
WITH settled AS (
    SELECT sent.row_key, sent.date FROM {KEPT} AS kept JOIN {SENT} AS sent ON {same("kept", "sent", *_KEY)}
    WHERE (status = '{COMPLETED}' AND (target_tx_id IS NOT NULL OR bridge = 'nft')) OR {was_asked}
)
SELECT sent.* FROM {SENT} AS sent ANTI JOIN settled ON {same("settled", "sent", *_KEY)}
WHERE {among("target_chain", chains)} ORDER BY "at", row_key
"""


NEWS = _news(NEW)
"""Query of the rows of :data:`NEW` that say something new."""
TRANSFERS_IN_FLIGHT = f"""
SELECT sent.* FROM {SENT} AS sent
ANTI JOIN (SELECT * FROM {KEPT} WHERE status = '{COMPLETED}') AS completed
    ON {same("completed", "sent", *_KEY)}
"""
"""Query of the transfers without a completed redemption."""
UNTOLD_TRANSFERS = (
    f"SELECT sent.* FROM {SENT} AS sent ANTI JOIN {KEPT} AS kept ON {same('kept', 'sent', *_KEY)}"
)
"""Query of the transfers of which nothing is known."""


def _text(name: str) -> str:
    return f"nullif(trim({name}), '')"


def _moment(name: str) -> str:
    """Return a time as a timestamp; null where it is none, or beyond the years that tables hold."""
    moment = f'TRY_CAST("{name}" AS TIMESTAMPTZ)'
    first, last = (f"TIMESTAMPTZ '{day} 00:00:00+00'" for day in ("1970-01-01", "9999-12-31"))
    return f"CASE WHEN {moment} BETWEEN {first} AND {last} THEN {moment} END"


def _decimal(name: str) -> str:
    """Return a decimal number as text without needless zeros; null where it is no such number."""
    plain = f"CASE WHEN regexp_matches({_text(name)}, '^[0-9]+([.][0-9]+)?$') THEN {_text(name)} END"
    cut = f"regexp_replace(regexp_replace({plain}, '([.][0-9]*?)0+$', '\\1'), '[.]$', '')"
    return f"regexp_replace({cut}, '^0+([0-9])', '\\1')"


def _only(name: str) -> str:
    """Return the one distinct text of an array; null where there are none or several."""
    distinct = f"list_distinct(list_filter({name}, lambda text: length(trim(text)) > 0))"
    return f"CASE WHEN len({distinct}) = 1 THEN ({distinct})[1] END"
