"""Wanted prices and quotes → the quote nearest in time, and whether it counts, as queries."""

from __future__ import annotations

import pyarrow as pa

from permalake.config.services import PricesSettings
from permalake.contracts.sql_text import same
from permalake.wormhole.contracts.value_reasons import LOW_CONFIDENCE, OUTLIER

TOKEN = ("origin_chain", "origin_address")
WANT_KEY = (*TOKEN, "at")
WANT_COLUMNS = 'origin_chain, origin_address, "at"'
"""The same in SQL, of which ``at`` is a word."""
WANTS, QUOTES, PRICED, CHECKING, LACKS = "wants", "offered_quotes", "priced_wants", "checking", "lacks"
"""What the queries read: distinct wanted tokens with their moments; quotes of one provider; rows of
:func:`nearest`; the same of the provider that is compared; why tokens have no quote at all."""
_TOKEN_FIELDS = ((TOKEN[0], pa.int32()), (TOKEN[1], pa.string()))
_MOMENT, _PRICE = pa.timestamp("us", tz="UTC"), pa.decimal128(38, 18)
WANT = pa.schema([*_TOKEN_FIELDS, ("at", _MOMENT)])
"""Columns of wants."""
QUOTE = pa.schema(
    [
        *(*_TOKEN_FIELDS, ("provider", pa.string()), ("quote_time", _MOMENT)),
        *(("price_usd", _PRICE), ("confidence", pa.float64()), ("coin", pa.string())),
    ]
)
"""Columns of quotes: at most one of a provider for a token and moment, with a price. ``coin``: as in
``token_prices``."""
NEAREST = pa.schema(
    [
        *(*WANT, ("price_usd", _PRICE), ("quote_time", _MOMENT), ("provider", pa.string())),
        *(("confidence", pa.float64()), ("coin", pa.string())),
        *(("contradicting_price_usd", _PRICE), ("reason", pa.string())),
    ]
)
"""Columns of :func:`nearest`."""
LACK = pa.schema([*_TOKEN_FIELDS, ("lack", pa.string())])
"""Columns of lacks."""
COUNTING = "price_usd IS NOT NULL AND reason IS NULL"
"""Which rows of :func:`nearest` count."""


def nearest(rules: PricesSettings) -> str:
    """Return the query of the quote nearest to each of :data:`WANTS` within the rules' window.

    Of two equally near the earlier; without one there is no row. ``contradicting_price_usd``: the price of
    the nearer one of the sound quotes before and after within the window, where the quote differs by more
    than ``max_factor`` from all there are; ``reason``: why the quote does not count, null where it does.
    """
    reach = round(rules.window_hours * 3_600_000_000)
    return f"""
WITH sound AS (
    SELECT {", ".join(TOKEN)}, quote_time, price_usd FROM {QUOTES}
    WHERE coalesce(confidence, 1) >= {rules.min_confidence!r}
), around AS (
    SELECT wanted.*, earlier.quote_time AS earlier, later.quote_time AS later
    FROM (SELECT DISTINCT {WANT_COLUMNS} FROM {WANTS}) AS wanted
    ASOF LEFT JOIN {QUOTES} AS earlier
    ON {same("wanted", "earlier", *TOKEN)} AND wanted.at >= earlier.quote_time
    ASOF LEFT JOIN {QUOTES} AS later
    ON {same("wanted", "later", *TOKEN)} AND wanted.at <= later.quote_time
), near AS (
    SELECT {WANT_COLUMNS},
        CASE WHEN {_is_first_nearer('"at"', "earlier", "later")} THEN earlier ELSE later END AS quote_time
    FROM around
), chosen AS (
    SELECT near.*, price_usd, provider, confidence, coin
    FROM near JOIN {QUOTES} AS quote ON {same("near", "quote", *TOKEN, "quote_time")}
    WHERE {_apart('"at"', "near.quote_time")} <= {reach}
), beside AS (
    SELECT chosen.*,
        CASE WHEN {_apart('"at"', "former.quote_time")} <= {reach} THEN former.quote_time END AS former_time,
        CASE WHEN {_apart('"at"', "former.quote_time")} <= {reach} THEN former.price_usd END AS former_usd,
        CASE WHEN {_apart('"at"', "next.quote_time")} <= {reach} THEN next.quote_time END AS next_time,
        CASE WHEN {_apart('"at"', "next.quote_time")} <= {reach} THEN next.price_usd END AS next_usd
    FROM chosen
    ASOF LEFT JOIN sound AS former
    ON {same("chosen", "former", *TOKEN)} AND chosen.quote_time > former.quote_time
    ASOF LEFT JOIN sound AS next
    ON {same("chosen", "next", *TOKEN)} AND chosen.quote_time < next.quote_time
), compared AS (
    SELECT *, CASE WHEN {_differs_if_any("former_usd", rules)} AND {_differs_if_any("next_usd", rules)}
        THEN CASE WHEN {_is_first_nearer("quote_time", "former_time", "next_time")}
            THEN former_usd ELSE next_usd END END AS contradicting_price_usd
    FROM beside
)
SELECT {WANT_COLUMNS}, price_usd, quote_time, provider, confidence, coin, contradicting_price_usd,
    {_reason(rules)} AS reason
FROM compared
"""


def compared(rules: PricesSettings) -> str:
    """Return the query of :data:`PRICED`, compared with the counting ones of :data:`CHECKING` too."""
    return f"""
WITH checks AS (
    SELECT {WANT_COLUMNS}, price_usd AS check_usd FROM {CHECKING} WHERE {COUNTING}
), both_sides AS (
    SELECT quote.* EXCLUDE (contradicting_price_usd, reason),
        coalesce(contradicting_price_usd, CASE WHEN {_differs("price_usd", "check_usd", rules)}
            THEN check_usd END) AS contradicting_price_usd
    FROM {PRICED} AS quote LEFT JOIN checks ON {same("quote", "checks", *WANT_KEY)}
)
SELECT *, {_reason(rules)} AS reason FROM both_sides
"""


def unpriced(wants: str, priced: str) -> str:
    """Return the query of wants that have no counting quote."""
    return f"""
SELECT {", ".join(f"wanted.{name}" for name in WANT_KEY)} FROM {wants} AS wanted
ANTI JOIN (SELECT * FROM {priced} WHERE {COUNTING}) AS counting ON {same("wanted", "counting", *WANT_KEY)}
"""


def quoted(wants: str) -> str:
    """Return the query of a row per want: its quote as far as it counts, else the reason and unused price."""
    return f"""
WITH judged AS (
    SELECT *, {COUNTING} AS counts FROM {PRICED}
)
SELECT {", ".join(f"wanted.{name}" for name in WANT_KEY)},
    CASE WHEN counts THEN price_usd END AS price_usd,
    CASE WHEN counts THEN quote_time END AS quote_time,
    CASE WHEN counts THEN provider END AS provider,
    CASE WHEN NOT counts THEN price_usd END AS unused_price_usd,
    confidence, contradicting_price_usd,
    CASE WHEN NOT coalesce(counts, false) THEN coalesce(reason, lack) END AS reason
FROM {wants} AS wanted
LEFT JOIN judged ON {same("wanted", "judged", *WANT_KEY)}
LEFT JOIN {LACKS} AS lacking ON {same("wanted", "lacking", *TOKEN)}
"""


def _differs_if_any(other: str, rules: PricesSettings) -> str:
    return f"({other} IS NULL OR {_differs('price_usd', other, rules)})"


def _differs(price: str, other: str, rules: PricesSettings) -> str:
    low, high = (f"CAST({pick}({price}, {other}) AS DOUBLE)" for pick in ("least", "greatest"))
    is_far = f"{high} > {low} * CAST({float(rules.max_factor)!r} AS DOUBLE)"
    return f"({price} IS NOT NULL AND {other} IS NOT NULL AND {is_far})"


def _reason(rules: PricesSettings) -> str:
    """Return why a quote with its confidence and what contradicts it does not count; else null."""
    outlier = f"WHEN contradicting_price_usd IS NOT NULL THEN '{OUTLIER}'" if rules.exclude_outliers else ""
    return f"CASE WHEN confidence < {rules.min_confidence!r} THEN '{LOW_CONFIDENCE}' {outlier} END"


def _is_first_nearer(moment: str, first: str, second: str) -> str:
    """Return the condition that ``first`` is as near as ``second``, where there is one, or nearer."""
    return f"{_apart(moment, first)} <= coalesce({_apart(moment, second)}, {_apart(moment, first)})"


def _apart(moment: str, other: str) -> str:
    return f"abs(epoch_us({moment}) - epoch_us({other}))"
