"""Transfers → the tokens whose decimals, symbols and prices are wanted, as queries."""

from __future__ import annotations

import pyarrow as pa

TOKENS, WANTED = "tokens", "wanted"
_TOKEN_FIELDS = (("origin_chain", pa.int32()), ("origin_address", pa.string()))
SCHEMAS = {
    TOKENS: pa.schema([("date", pa.date32()), *_TOKEN_FIELDS]),
    WANTED: pa.schema([*_TOKEN_FIELDS, ("at", pa.timestamp("us", tz="UTC"))]),
}
"""Columns of the queries' rows, which are distinct."""
OWN = "in_token_transfers = 0 AND token_address IS NOT NULL"
"""Which of ``application_transfers`` have a token that the token bridge does not count."""

_MOVED = f"""
WITH moved AS (
    SELECT date, row_key, origin_chain, origin_address FROM token_transfer_payload
    UNION ALL
    SELECT date, row_key, token_chain, token_address FROM application_transfers WHERE {OWN}
)
"""
QUERIES = {
    TOKENS: f"{_MOVED} SELECT DISTINCT date, origin_chain, origin_address FROM moved",
    WANTED: f"""{_MOVED}
SELECT DISTINCT origin_chain, origin_address, published.timestamp AS at
FROM moved JOIN message_publication AS published
ON moved.date = published.date AND moved.row_key = published.row_key
""",
}
"""Tokens per day, and tokens with the times of the VAAs that move them."""
