"""Transfers whose amount, symbol or name rests on an attestation that has changed since."""

from __future__ import annotations

import pyarrow as pa

from permalake.contracts.sql_text import same

_TOKEN_OF_DAY = ("date", "origin_chain", "origin_address")
ATTESTED, BEFORE = "attested_now", "attested_before"
"""Rows of ``attested_tokens`` of some days, and the same as carried before."""


# Transfers do not show the former attestation of a token that is attested no longer.
OUTDATED = f"""
WITH valued AS (
    SELECT t.date, t.origin_chain, t.origin_address, t.amount AS raw,
        details.amount, origin_symbol, origin_name
    FROM token_transfer_payload AS t
    JOIN token_transfer_details AS details ON t.date = details.date AND t.row_key = details.row_key
), lost AS (
    SELECT once.date, once.origin_chain, once.origin_address
    FROM {BEFORE} AS once ANTI JOIN {ATTESTED} AS told ON {same("once", "told", *_TOKEN_OF_DAY)}
), changed AS (
    SELECT valued.date, valued.origin_chain, valued.origin_address
    FROM valued JOIN {ATTESTED} AS told ON {same("valued", "told", *_TOKEN_OF_DAY)}
    WHERE origin_symbol IS DISTINCT FROM told.symbol OR origin_name IS DISTINCT FROM told.name
        OR valued.amount IS DISTINCT FROM scaled_amount(raw, decimals)
    UNION ALL
    SELECT t.date, t.origin_chain, t.origin_address
    FROM token_transfer_payload AS t SEMI JOIN lost ON {same("t", "lost", *_TOKEN_OF_DAY)}
)
SELECT date, min(concat_ws(':', CAST(origin_chain AS STRING), origin_address)) AS token
FROM changed GROUP BY date
"""
"""Query of the days with a transfer that would have another amount, symbol or name now, with such a token."""
OUTDATED_DAY = pa.schema([("date", pa.date32()), ("token", pa.string())])
