"""Attestations, token list and RPCs → decimals, symbol and name of a token on a day, as queries."""

from __future__ import annotations

import pyarrow as pa

from permalake.contracts.sql_text import same
from permalake.wormhole.tables.chain_questions import TOKEN as QUESTION_TOKEN

TOKEN = ("origin_chain", "origin_address")
ATTESTED, ENTRIES = "attested_records", "token_list"
"""What the queries read beside the wanted tokens: rows of ``attested_tokens`` of their days, and the token
list."""
_TEXTS = (("symbol", pa.string()), ("name", pa.string()))
ENTRY = pa.schema([("chain", pa.int32()), ("token_address", pa.string()), ("decimals", pa.int32()), *_TEXTS])
"""Columns of the token list that count."""


def token_metadata(tokens: str) -> str:
    """Return the query of decimals, symbol and name of each of ``tokens`` (date, token) that is known.

    All three values come from one record: the latest attestation up to and including the day, else the
    token list.
    """
    return f"""
SELECT wanted.date, wanted.origin_chain, wanted.origin_address,
    CASE WHEN {_IS_ATTESTED} THEN attested.decimals ELSE entry.decimals END AS decimals,
    CASE WHEN {_IS_ATTESTED} THEN attested.symbol ELSE entry.symbol END AS symbol,
    CASE WHEN {_IS_ATTESTED} THEN attested.name ELSE entry.name END AS name
FROM {tokens} AS wanted
LEFT JOIN {ATTESTED} AS attested ON wanted.date = attested.date
    AND wanted.origin_chain = attested.origin_chain AND wanted.origin_address = attested.origin_address
LEFT JOIN {ENTRIES} AS entry
    ON wanted.origin_chain = entry.chain AND wanted.origin_address = entry.token_address
WHERE {_IS_ATTESTED} OR entry.chain IS NOT NULL
"""


def completed(tokens: str, answers: str) -> str:
    """Return the query of the same, with the decimals that only the RPC of a token's chain has.

    ``answers``: rows of ``chain_answers`` that hold an answer.
    """
    return f"""
WITH recorded AS ({token_metadata(tokens)}
), answered AS (
    SELECT wanted.date, wanted.origin_chain, wanted.origin_address,
        answer.decimals, answer.symbol, answer.name
    FROM {tokens} AS wanted
    JOIN {answers} AS answer ON answer.question = '{QUESTION_TOKEN}'
        AND wanted.origin_chain = answer.chain AND wanted.origin_address = answer.subject
    ANTI JOIN (SELECT * FROM recorded WHERE decimals IS NOT NULL) AS counted
        ON {same("wanted", "counted", "date", *TOKEN)}
)
SELECT * FROM answered
UNION ALL
SELECT * FROM recorded WHERE decimals IS NOT NULL
UNION ALL
SELECT recorded.* FROM recorded ANTI JOIN answered ON {same("recorded", "answered", "date", *TOKEN)}
WHERE recorded.decimals IS NULL
"""


_IS_ATTESTED = "attested.date IS NOT NULL"
