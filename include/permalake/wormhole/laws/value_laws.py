"""Laws of prices and values of token transfers."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DecimalType

from permalake.audit.laws import violations
from permalake.audit.scope import Scope
from permalake.audit.suite import WARNING
from permalake.wormhole.laws.transfer_sides import in_words, routed
from permalake.wormhole.reference import load_reference

_UNPRICED_AT_MOST = 0.5
_PLACES = 8
_LIMIT = 10**38


def _wrong_values(scope: Scope) -> DataFrame:
    """Return the transfers whose value is not that of :func:`_times`."""
    details = scope("token_transfer_details").where("amount IS NOT NULL AND token_price_usd IS NOT NULL")
    checked = details.withColumn("product", _product("amount", "token_price_usd"))
    return in_words(
        checked.where("NOT product <=> notional_usd").selectExpr(
            "date", "row_key AS place", "product AS expected", "notional_usd AS found"
        )
    )


@arrow_udf(returnType=DecimalType(38, _PLACES))  # type: ignore[call-overload, untyped-decorator, unused-ignore]
def _product(amounts: pa.Array, prices: pa.Array) -> pa.Array:
    pairs = zip(amounts.to_pylist(), prices.to_pylist(), strict=True)
    return pa.array([_times(*pair) for pair in pairs], pa.decimal128(38, _PLACES))


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


def _priced_denied(scope: Scope) -> DataFrame:
    """Return the transfers of denied tokens that have a price."""
    rows = routed(scope)
    denied = rows.sparkSession.createDataFrame(load_reference(scope.reference).denied_table())
    denied = denied.toDF("origin_chain", "origin_address")
    return (
        rows.join(F.broadcast(denied), ["origin_chain", "origin_address"], "left_semi")
        .where("token_price_usd IS NOT NULL OR notional_usd IS NOT NULL")
        .selectExpr("date", "row_key AS place", "'no price' AS expected", "token_price_usd AS found")
    )


def _far_quotes(scope: Scope) -> DataFrame:
    """Return the transfers priced by a quote from outside the window."""
    seconds = round(scope.window_hours * 3600)
    rows = routed(scope).withColumn(
        "off", F.expr("abs(unix_seconds(price_timestamp) - unix_seconds(timestamp))")
    )
    return rows.where(f"off > {seconds}").selectExpr(
        "date", "row_key AS place", f"'a quote within {seconds} s' AS expected", "off || ' s' AS found"
    )


def _lost_quotes(scope: Scope) -> DataFrame:
    """Return the transfers whose quote is not in token_prices."""
    kept = scope("token_prices").selectExpr(
        *("origin_chain", "origin_address", "provider AS price_source", "quote_time AS price_timestamp"),
        "price_usd AS token_price_usd",
    )
    priced = routed(scope).where("token_price_usd IS NOT NULL")
    return priced.join(kept, kept.columns, "left_anti").selectExpr(
        "date", "row_key AS place", "'its quote in token_prices' AS expected", "'none' AS found"
    )


def _unpriced(scope: Scope) -> DataFrame:
    """Return the days on which too large a share of transfers with a known amount has no value."""
    days = scope("token_transfer_details").where("amount IS NOT NULL").groupBy("date")
    share = days.agg(F.avg(F.expr("if(notional_usd IS NULL, 1.0, 0.0)")).alias("share"))
    return share.where(f"share > {_UNPRICED_AT_MOST}").selectExpr(
        "date",
        "'share without value' AS place",
        f"'at most {_UNPRICED_AT_MOST:.0%}' AS expected",
        "format_string('%.0f%%', cast(share * 100 AS double)) AS found",
    )


def _missing_prices(scope: Scope) -> DataFrame:
    """Return the days on which more transfers lack a price than the configuration allows.

    Only tokens that providers know count: those with a CoinGecko id in a list, unless denied.
    """
    rows = routed(scope).where("amount IS NOT NULL")
    known = load_reference(scope.reference)
    priceable = known.token_table().to_pylist() if scope.max_missing < 1 else []
    tokens = [
        (token["chain"], token["token_address"])
        for token in priceable
        if token["coingecko_id"] and (token["chain"], token["token_address"]) not in known.denied
    ]
    listed = rows.sparkSession.createDataFrame(tokens, "origin_chain int, origin_address string")
    share = (
        rows.join(F.broadcast(listed), ["origin_chain", "origin_address"], "left_semi")
        .groupBy("date")
        .agg(F.avg(F.expr("if(token_price_usd IS NULL, 1.0, 0.0)")).alias("share"))
    )
    return share.where(f"share > {scope.max_missing}").selectExpr(
        "date",
        "'share without price' AS place",
        f"'at most {scope.max_missing:.0%} (prices.max_missing)' AS expected",
        "format_string('%.0f%%', cast(share * 100 AS double)) AS found",
    )


LAWS = (
    violations(
        "notional_is_amount_times_price",
        "token_transfer_details",
        "notional_usd is amount x token_price_usd, half-even to 8 places.",
        _wrong_values,
    ),
    violations(
        "denied_tokens_have_no_price", "token_transfer_details", "Denied tokens get no price.", _priced_denied
    ),
    violations(
        "quote_within_window", "token_transfer_details", "A quote is near the VAA in time.", _far_quotes
    ),
    violations("quotes_are_kept", "token_prices", "Every quote that served is kept.", _lost_quotes),
    violations(
        "few_prices_missing",
        "token_transfer_details",
        "No more transfers of listed tokens lack a price than prices.max_missing allows.",
        _missing_prices,
    ),
    violations(
        "few_without_value",
        "token_transfer_details",
        "Most transfers with a known amount have a value.",
        _unpriced,
        severity=WARNING,
    ),
)
