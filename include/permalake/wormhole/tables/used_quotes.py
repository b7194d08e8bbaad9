"""Quotes → ``token_prices``, and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from permalake.contracts.sql_text import same
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.contracts.value_reasons import PRICE_LIMIT

STORED, SPANS, USED = "stored_quotes", "wanted_spans", "used_quotes"
"""What the queries read: rows of ``token_prices``, rows of :func:`spans`, and rows of :func:`used_quotes`."""
SPAN = pa.schema(
    [
        *(("origin_chain", pa.int32()), ("origin_address", pa.string())),
        *((name, pa.timestamp("us", tz="UTC")) for name in ("first", "last")),
    ]
)
"""Columns of :func:`spans`."""


def is_price(price: str) -> str:
    """Return the condition that a quote is a price: above zero, below the limit of the absurd."""
    return f"({price} > 0 AND {price} < {PRICE_LIMIT})"


def spans(wants: str) -> str:
    """Return the query of the tokens of ``wants``, each with its first and last wanted moment."""
    return f"""
SELECT origin_chain, origin_address, min("at") AS first, max("at") AS last
FROM {wants} GROUP BY origin_chain, origin_address
"""


def reach(window_hours: float) -> str:
    """Return the interval that a quote may lie before or after what it serves."""
    return f"to_microseconds({round(window_hours * 3_600_000_000)})"


def stored_near(provider: str, window_hours: float) -> str:
    """Return the query of a provider's valid quotes that lie within reach of any wanted time."""
    around = reach(window_hours)
    return f"""
SELECT stored.* FROM {STORED} AS stored
WHERE provider = '{provider}' AND {is_price("price_usd")} AND quote_time BETWEEN
    (SELECT min(first) FROM {SPANS}) - {around} AND (SELECT max(last) FROM {SPANS}) + {around}
"""


def used_quotes(quotes: Sequence[str], now: datetime) -> str:
    """Return the query of the distinct quotes of some relations as new rows of ``token_prices``.

    ``now``: when they are stored.
    """
    columns = "origin_chain, origin_address, provider, quote_time, price_usd, confidence, coin"
    every = " UNION ALL ".join(f"SELECT {columns} FROM {name}" for name in quotes)
    return f"""
SELECT DISTINCT {columns}, CAST(quote_time AS DATE) AS date, TIMESTAMP '{now}' AS fetched_at,
    CAST(NULL AS DECIMAL(38, 18)) AS former_price_usd, CAST(NULL AS TIMESTAMP) AS corrected_at
FROM ({every}) AS every
"""


ANOTHER_COIN = "old.coin IS NOT NULL AND new.coin IS DISTINCT FROM old.coin"
"""The condition that a row is a quote of another coin than the stored one of its key."""


def former_price(stored: str, now: datetime) -> dict[str, str]:
    """Return the columns in which a row keeps the price of the one that it replaces, as SQL by name.

    ``stored`` names the replaced row; ``now``: when it is replaced.
    """
    return {"former_price_usd": f"{stored}.price_usd", "corrected_at": f"TIMESTAMP '{now}'"}


def corrections(now: datetime) -> str:
    """Return the query of the stored rows whose price is another one in :data:`USED`, corrected.

    ``now``: when they are corrected.
    """
    replaced = ", ".join(f"{value} AS {name}" for name, value in former_price("stored", now).items())
    return f"""
SELECT used.* REPLACE (stored.fetched_at AS fetched_at, {replaced})
FROM {USED} AS used JOIN {STORED} AS stored ON {same("used", "stored", *TOKEN_PRICES.key, "date")}
WHERE used.price_usd <> stored.price_usd
"""
