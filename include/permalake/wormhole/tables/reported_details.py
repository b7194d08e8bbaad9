"""Senders that the source's API reports → rows of ``chain_answers``, as a query."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

REPORTED = "reported_sender"
SENDERS = "reported_senders"
SENDER = pa.schema([("row_key", pa.string()), ("sender", pa.string())])
"""Columns of the senders that are reported: ``sourceChain.from`` of an operation, in the chain's own form."""


def sender_answers(now: datetime) -> str:
    """Return the query of the answers that :data:`SENDERS` are, of transfers of the days.

    An answer of the chain's RPC has precedence.
    """
    return f"""
WITH sent AS (
    SELECT date, row_key FROM token_transfer_payload UNION ALL SELECT date, row_key FROM nft_transfer_payload
)
SELECT CAST(split_part(sent.row_key, ':', 1) AS INT) AS chain, '{REPORTED}' AS question,
    sent.row_key AS subject, 1 AS told, min(trim(sender)) AS address, NULL AS symbol, NULL AS name,
    NULL AS decimals, NULL AS reason, TIMESTAMP '{now}' AS asked_at, sent.date
FROM sent JOIN {SENDERS} AS reported ON sent.row_key = reported.row_key
WHERE trim(sender) <> '' GROUP BY sent.row_key, sent.date
"""
