"""Transfers whose amount, symbol or name rests on an attestation that has changed since."""

from __future__ import annotations

import pyarrow as pa

from permalake.contracts.sql_text import same
from permalake.wormhole.tables.moved_tokens import NOT_BRIDGED, STATED_AMOUNT

_KEY = ("date", "row_key")
_TOKEN_OF_DAY = ("date", "origin_chain", "origin_address")
ATTESTED, BEFORE = "attested_now", "attested_before"
"""Rows of ``attested_tokens`` of some days, and the same as carried before."""


# Transfers do not show the former attestation of a token that is attested no longer.
OUTDATED = f"""
WITH valued AS (
    SELECT t.date, t.origin_chain, t.origin_address, t.amount AS raw, CAST(NULL AS INT) AS stated_decimals,
        details.amount, origin_symbol AS symbol, origin_name AS name
    FROM token_transfer_payload AS t
    JOIN token_transfer_details AS details ON {same("t", "details", *_KEY)}
    UNION ALL
    SELECT t.date, t.token_chain, t.token_address, t.raw, t.amount_decimals, details.amount,
        token_symbol, token_name
    FROM (SELECT *, {STATED_AMOUNT} AS raw FROM application_transfers WHERE {NOT_BRIDGED}) AS t
    JOIN application_transfer_details AS details ON {same("t", "details", *_KEY)}
), lost AS (
    SELECT once.date, once.origin_chain, once.origin_address
    FROM {BEFORE} AS once ANTI JOIN {ATTESTED} AS told ON {same("once", "told", *_TOKEN_OF_DAY)}
), changed AS (
    SELECT valued.date, valued.origin_chain, valued.origin_address
    FROM valued JOIN {ATTESTED} AS told ON {same("valued", "told", *_TOKEN_OF_DAY)}
    WHERE valued.symbol IS DISTINCT FROM told.symbol OR valued.name IS DISTINCT FROM told.name
        OR valued.amount IS DISTINCT FROM scaled_amount(raw, coalesce(stated_decimals, decimals))
    UNION ALL
    SELECT valued.date, valued.origin_chain, valued.origin_address
    FROM valued SEMI JOIN lost ON {same("valued", "lost", *_TOKEN_OF_DAY)}
)
SELECT date, min(concat_ws(':', CAST(origin_chain AS STRING), origin_address)) AS token
FROM changed GROUP BY date
"""
"""Query of the days with a transfer that would have another amount, symbol or name now, with such a token."""
OUTDATED_DAY = pa.schema([("date", pa.date32()), ("token", pa.string())])
