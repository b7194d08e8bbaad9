"""Laws of prices and values of token transfers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa

from permalake.audit.configuration import Configuration
from permalake.audit.laws import each_row, shared, violations
from permalake.audit.suite import WARNING
from permalake.contracts.rows import Row
from permalake.wormhole.laws.transfer_sides import ROUTED
from permalake.wormhole.reference import load_reference

_UNPRICED_AT_MOST = 0.5
_APART_AT_MOST = 0.05
_PLACES = 8
_LIMIT = 10**38


def _denied(configuration: Configuration) -> pa.Table:
    """Return the denied tokens: (chain, address)."""
    return load_reference(configuration.reference).denied_table()


def _priceable(configuration: Configuration) -> pa.Table:
    """Return the tokens that providers know: those with a CoinGecko id in a list, unless denied."""
    reference = load_reference(configuration.reference)
    tokens = [
        {"chain": token["chain"], "token_address": token["token_address"]}
        for token in reference.token_table().to_pylist()
        if token["coingecko_id"] and (token["chain"], token["token_address"]) not in reference.denied
    ]
    return pa.Table.from_pylist(tokens, pa.schema({"chain": pa.int32(), "token_address": pa.string()}))


shared("denied_tokens", _denied)
shared("priceable_tokens", _priceable)


_SAME = "transfers.origin_chain = tokens.chain AND transfers.origin_address = tokens.token_address"
_VALUED = """
SELECT date, row_key, amount, token_price_usd, notional_usd FROM token_transfer_details
WHERE amount IS NOT NULL AND token_price_usd IS NOT NULL
"""
_STANDING = """
SELECT date, row_key, amount, stand_in_price_usd AS token_price_usd, stand_in_notional_usd AS notional_usd
FROM token_transfer_details WHERE amount IS NOT NULL AND stand_in_price_usd IS NOT NULL
"""
_MIXED = f"""
SELECT date, row_key AS place, 'no stand-in beside a quote' AS expected, stand_in AS found
FROM {ROUTED} WHERE token_price_usd IS NOT NULL AND stand_in IS NOT NULL
"""
_DISAGREEING = f"""
SELECT date, row_key AS place,
    price_source || ' ' || CAST(token_price_usd AS STRING) AS expected,
    check_price_source || ' ' || CAST(check_price_usd AS STRING) AS found
FROM {ROUTED}
WHERE abs(CAST(token_price_usd AS DOUBLE) - CAST(check_price_usd AS DOUBLE))
    > {_APART_AT_MOST} * CAST(check_price_usd AS DOUBLE)
"""
_PRICED_DENIED = f"""
SELECT transfers.date AS date, row_key AS place, 'no price' AS expected, token_price_usd AS found
FROM {ROUTED} AS transfers SEMI JOIN denied_tokens AS tokens ON {_SAME}
WHERE token_price_usd IS NOT NULL OR notional_usd IS NOT NULL
"""
_LOST_QUOTES = f"""
SELECT transfers.date AS date, row_key AS place, 'its quote in token_prices' AS expected, 'none' AS found
FROM {ROUTED} AS transfers ANTI JOIN token_prices AS quotes
    ON transfers.origin_chain = quotes.origin_chain AND transfers.origin_address = quotes.origin_address
    AND price_source = quotes.provider AND price_timestamp = quotes.quote_time
    AND token_price_usd = quotes.price_usd
WHERE token_price_usd IS NOT NULL
UNION ALL
SELECT transfers.date AS date, row_key AS place, 'the quote of its cross-check in token_prices' AS expected,
    'none' AS found
FROM {ROUTED} AS transfers ANTI JOIN token_prices AS quotes
    ON transfers.origin_chain = quotes.origin_chain AND transfers.origin_address = quotes.origin_address
    AND check_price_source = quotes.provider AND check_price_timestamp = quotes.quote_time
    AND check_price_usd = quotes.price_usd
WHERE check_price_usd IS NOT NULL
"""
_OUTLIERS = """
SELECT date, row_key AS place,
    'within a factor of ' || CAST(max_factor AS STRING) || ' of ' || CAST(contradicting_price_usd AS STRING)
        || ' (prices.max_factor)' AS expected,
    CAST(coalesce(token_price_usd, unused_price_usd) AS STRING) AS found
FROM token_transfer_details CROSS JOIN configuration
WHERE contradicting_price_usd IS NOT NULL
"""
_UNSURE = """
SELECT date, row_key AS place,
    'confidence of at least ' || CAST(min_confidence AS STRING) || ' (prices.min_confidence)' AS expected,
    CAST(price_confidence AS STRING) AS found
FROM token_transfer_details CROSS JOIN configuration
WHERE token_price_usd IS NOT NULL AND price_confidence < min_confidence
"""
# Days on which too large a share of transfers with a known amount has no value.
_UNPRICED = f"""
SELECT date, 'share without value' AS place, 'at most {_UNPRICED_AT_MOST:.0%}' AS expected,
    CAST(round(share * 100) AS INT) || '%' AS found
FROM (
    SELECT date, avg(CASE WHEN notional_usd IS NULL THEN 1.0 ELSE 0.0 END) AS share
    FROM token_transfer_details WHERE amount IS NOT NULL GROUP BY date
) WHERE share > {_UNPRICED_AT_MOST}
"""
# Days on which more transfers of tokens that providers know lack a price than the configuration allows.
_MISSING_PRICES = f"""
SELECT date, 'share without price' AS place,
    'at most ' || CAST(round(max_missing * 100) AS INT) || '% (prices.max_missing)' AS expected,
    CAST(round(share * 100) AS INT) || '%' AS found
FROM (
    SELECT transfers.date AS date, avg(CASE WHEN token_price_usd IS NULL THEN 1.0 ELSE 0.0 END) AS share
    FROM {ROUTED} AS transfers SEMI JOIN priceable_tokens AS tokens ON {_SAME}
    WHERE amount IS NOT NULL GROUP BY transfers.date
) CROSS JOIN configuration
WHERE share > max_missing
"""


def far_quotes(rows: str) -> str:
    """Return the query of the rows whose quote lies too far from them in time."""
    return f"""
SELECT date, row_key AS place, 'a quote within ' || window_seconds || ' s' AS expected,
    apart || ' s' AS found
FROM (
    SELECT date, row_key, abs(epoch_us(price_timestamp) // 1000000 - epoch_us(timestamp) // 1000000) AS apart
    FROM {rows}
) CROSS JOIN configuration
WHERE apart > window_seconds
"""


def wrong_distances(rows: str) -> str:
    """Return the query of the rows whose quote has another distance in time than they tell."""
    return f"""
SELECT date, row_key AS place, CAST(apart AS STRING) AS expected,
    CAST(price_distance_seconds AS STRING) AS found
FROM (
    SELECT date, row_key, price_distance_seconds,
        CAST(floor(abs(epoch_us(price_timestamp) - epoch_us(timestamp)) / 1000000) AS BIGINT) AS apart
    FROM {rows}
) WHERE price_distance_seconds IS DISTINCT FROM apart
"""


def wrong_values(row: Row) -> Iterator[tuple[object, ...]]:
    """Find a value of a transfer that is not that of :func:`_times`."""
    value = _times(row["amount"], row["token_price_usd"])
    if value != row["notional_usd"]:
        yield row["date"], row["row_key"], _text(value), _text(row["notional_usd"])


def _text(value: Decimal | None) -> str:
    return "null" if value is None else f"{value:f}"


def _times(amount: str, price: Decimal) -> Decimal | None:
    """Return amount x price, half-even to 8 places; None beyond decimal(38,8).

    Computed with integers, by another way than the table was.
    """
    whole, _, fraction = amount.partition(".")
    sign, digits, exponent = price.as_tuple()
    places = len(fraction) - int(exponent)
    exact = int(whole + fraction) * int("".join(map(str, digits))) * (-1 if sign else 1)
    unit = 10 ** max(places - _PLACES, 0)
    scaled, rest = divmod(exact * 10 ** max(_PLACES - places, 0), unit)
    scaled += 2 * rest > unit or (2 * rest == unit and scaled % 2 == 1)
    # From text: decimal arithmetic would round to the 28 digits of the default context.
    return Decimal(f"{scaled}e-{_PLACES}") if abs(scaled) < _LIMIT else None


LAWS = (
    violations(
        "notional_is_amount_times_price",
        "token_transfer_details",
        "notional_usd is amount x token_price_usd, half-even to 8 places.",
        _VALUED,
        check=each_row(wrong_values),
    ),
    violations(
        "denied_tokens_have_no_price", "token_transfer_details", "Denied tokens get no price.", _PRICED_DENIED
    ),
    violations(
        "quote_within_window",
        "token_transfer_details",
        "A quote is near the VAA in time.",
        far_quotes(ROUTED),
    ),
    violations(
        "distance_to_quote",
        "token_transfer_details",
        "price_distance_seconds is the time between quote and VAA, null without a quote.",
        wrong_distances(ROUTED),
    ),
    violations(
        "providers_agree",
        "token_transfer_details",
        f"A quote and its cross-check differ by at most {_APART_AT_MOST:.0%}.",
        _DISAGREEING,
        severity=WARNING,
    ),
    violations(
        "prices_have_no_outliers",
        "token_transfer_details",
        "A quote differs from the token's quotes before and after it, or from its cross-check, by at most "
        "prices.max_factor.",
        _OUTLIERS,
        severity=WARNING,
    ),
    violations(
        "prices_are_confident",
        "token_transfer_details",
        "A quote counts only with the confidence of prices.min_confidence.",
        _UNSURE,
    ),
    violations(
        "stand_ins_are_apart",
        "token_transfer_details",
        "A transfer with a quote has no stand-in price.",
        _MIXED,
    ),
    violations(
        "stand_in_value_is_amount_times_price",
        "token_transfer_details",
        "stand_in_notional_usd is amount x stand_in_price_usd, half-even to 8 places.",
        _STANDING,
        check=each_row(wrong_values),
    ),
    violations("quotes_are_kept", "token_prices", "Every quote that served is kept.", _LOST_QUOTES),
    violations(
        "few_prices_missing",
        "token_transfer_details",
        "No more transfers of listed tokens lack a price than prices.max_missing allows.",
        _MISSING_PRICES,
    ),
    violations(
        "few_without_value",
        "token_transfer_details",
        "Most transfers with a known amount have a value.",
        _UNPRICED,
        severity=WARNING,
    ),
)
