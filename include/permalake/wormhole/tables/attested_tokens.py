"""Attestations → ``attested_tokens``: the metadata of each token at each day's end, as a query.

Every day with messages carries every token attested so far, so that the latest day before a range is the
whole running state, and the cost of a day does not grow with history. Only the bridge of a token's own chain
may attest it.
"""

from __future__ import annotations

STATE = "attested_state"
"""The rows of ``attested_tokens`` of the latest day before the range."""
_TOKEN = "origin_chain, origin_address"  # noqa: S105

ATTESTED_TOKENS = f"""
WITH days AS (
    SELECT DISTINCT date FROM message_publication
), latest AS (
    SELECT meta.date, meta.token_chain AS origin_chain, meta.token_address AS origin_address,
        meta.decimals, meta.symbol, meta.name, meta.row_key
    FROM asset_meta_payload AS meta
    JOIN message_publication AS published ON meta.date = published.date AND meta.row_key = published.row_key
    WHERE CAST(split_part(meta.row_key, ':', 1) AS INT) = meta.token_chain
    QUALIFY row_number() OVER (
        PARTITION BY meta.date, meta.token_chain, meta.token_address
        ORDER BY published.timestamp DESC, meta.row_key DESC
    ) = 1
), tokens AS (
    SELECT {_TOKEN} FROM latest UNION SELECT {_TOKEN} FROM {STATE}
), grid AS (
    SELECT days.date, tokens.origin_chain, tokens.origin_address FROM days CROSS JOIN tokens
)
SELECT grid.date, grid.origin_chain, grid.origin_address,
    CASE WHEN latest.date IS NULL THEN held.decimals ELSE latest.decimals END AS decimals,
    CASE WHEN latest.date IS NULL THEN held.symbol ELSE latest.symbol END AS symbol,
    CASE WHEN latest.date IS NULL THEN held.name ELSE latest.name END AS name,
    CASE WHEN latest.date IS NULL THEN held.attested_on ELSE latest.date END AS attested_on,
    CASE WHEN latest.date IS NULL THEN held.row_key ELSE latest.row_key END AS row_key
FROM grid
ASOF LEFT JOIN latest ON grid.origin_chain = latest.origin_chain
    AND grid.origin_address = latest.origin_address AND grid.date >= latest.date
LEFT JOIN {STATE} AS held
    ON grid.origin_chain = held.origin_chain AND grid.origin_address = held.origin_address
WHERE latest.date IS NOT NULL OR held.origin_chain IS NOT NULL
"""
"""Query of the rows of the days with messages. Of several attestations of a day the one with the latest
timestamp counts, of equals the one with the highest key."""
