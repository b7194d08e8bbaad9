"""Transfers → the tokens that they move, whose decimals, symbols and prices are looked up, as queries."""

from __future__ import annotations

import pyarrow as pa

from permalake.wormhole.tables.exact_amounts import DECIMALS

TOKENS, MOMENTS = "tokens", "token_moments"
_TOKEN_FIELDS = (("origin_chain", pa.int32()), ("origin_address", pa.string()))
SCHEMAS = {
    TOKENS: pa.schema([("date", pa.date32()), *_TOKEN_FIELDS]),
    MOMENTS: pa.schema([*_TOKEN_FIELDS, ("at", pa.timestamp("us", tz="UTC"))]),
}
"""Columns of the queries' rows, which are distinct."""
NOT_BRIDGED = "in_token_transfers = 0 AND token_address IS NOT NULL"
"""Which of ``application_transfers`` have a token that the token bridge does not count."""
STATED_AMOUNT = f"CASE WHEN coalesce(amount_decimals, 0) <= {DECIMALS} THEN amount END"
"""Their raw amount: more decimals than 8 are stated by mistake, as NTT does not allow them."""

_MOVED = f"""
WITH moved AS (
    SELECT date, row_key, origin_chain, origin_address FROM token_transfer_payload
    UNION ALL
    SELECT date, row_key, token_chain, token_address FROM application_transfers WHERE {NOT_BRIDGED}
)
"""
QUERIES = {
    TOKENS: f"{_MOVED} SELECT DISTINCT date, origin_chain, origin_address FROM moved",
    MOMENTS: f"""{_MOVED}
SELECT DISTINCT origin_chain, origin_address, published.timestamp AS at
FROM moved JOIN message_publication AS published
ON moved.date = published.date AND moved.row_key = published.row_key
""",
}
"""Tokens per day, and tokens with the times of the VAAs that move them."""
