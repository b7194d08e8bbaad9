"""What the laws of a Wormhole day compare: sides and violations over its tables."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from permalake.audit.laws import Frame, Scope, entries, union
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.exact_amounts import LIMB_NAMES, joined, limbs

UNPRICED_AT_MOST = 0.5
_ROUTE = ("date", "emitter_chain", "target_chain", "origin_chain", "origin_address")
AT_ROUTE = (
    "format_string('chain %d to %d, token %d:%s', emitter_chain, target_chain, origin_chain, origin_address)"
)
_PLACES = 8
_LIMIT = 10**38


def keys(*tables: str, where: str = "true") -> Frame:
    """Row keys of tables."""
    return lambda scope: entries(
        union(scope(table).where(where).select("date", "row_key") for table in tables), "row_key"
    )


def routed(scope: Scope) -> DataFrame:
    """Token transfers with their route, amounts and values."""

    def make() -> DataFrame:
        events = scope("message_publication").select("date", "row_key", "emitter_chain", "timestamp")
        transfers = scope("token_transfer_payload").drop("amount", "app_payload")
        return transfers.join(events, ["date", "row_key"]).join(
            scope("token_transfer_details"), ["date", "row_key"], "left"
        )

    return scope.shared("routed", make)


def receivers(scope: Scope) -> DataFrame:
    """Distinct receivers per target chain."""
    known = scope("chain_details").select("date", "row_key", "receiver_address")
    rows = scope("token_transfer_payload").join(known, ["date", "row_key"], "left")
    counted = rows.groupBy("date", "target_chain").agg(
        F.count_distinct(F.coalesce("receiver_address", "target_address")).alias("n")
    )
    return entries(counted, "concat('chain ', target_chain)", "n")


def wrong_sums(scope: Scope) -> DataFrame:
    """Routes whose amount or value is not the sum of their transfers'."""
    sums = (
        routed(scope)
        .select(*_ROUTE, "notional_usd", *limbs(F.col("amount")))
        .groupBy(*_ROUTE)
        .agg(
            *(F.sum(limb).alias(limb) for limb in LIMB_NAMES),
            F.try_sum("notional_usd").alias("notional_expected"),
        )
        .withColumn("amount_expected", joined(*(F.col(limb) for limb in LIMB_NAMES)))
    )
    daily = scope("notional_transferred_daily").select(*_ROUTE, "amount", "notional_usd")
    both = daily.join(sums, list(_ROUTE))
    pairs = both.selectExpr(
        "date",
        f"stack(2, {AT_ROUTE} || ' amount', amount_expected, amount, {AT_ROUTE} || ' notional_usd', "
        "cast(notional_expected AS string), cast(notional_usd AS string)) AS (place, expected, found)",
    )
    return _told(pairs.where("NOT expected <=> found"))


def wrong_values(scope: Scope) -> DataFrame:
    """Transfers whose value is not amount x price, half-even to 8 places, null beyond decimal(38,8)."""
    details = scope("token_transfer_details").where("amount IS NOT NULL AND token_price_usd IS NOT NULL")
    checked = details.withColumn("product", _product("amount", "token_price_usd"))
    return _told(
        checked.where("NOT product <=> notional_usd").selectExpr(
            "date", "row_key AS place", "product AS expected", "notional_usd AS found"
        )
    )


@F.arrow_udf(returnType=DecimalType(38, _PLACES))  # type: ignore[call-overload]
def _product(amounts: pa.Array, prices: pa.Array) -> pa.Array:
    pairs = zip(amounts.to_pylist(), prices.to_pylist(), strict=True)
    return pa.array([_times(*pair) for pair in pairs], pa.decimal128(38, _PLACES))


def _times(amount: str, price: Decimal) -> Decimal | None:
    """In integers, by another way than the table was made."""
    whole, _, fraction = amount.partition(".")
    sign, digits, exponent = price.as_tuple()
    places = len(fraction) - int(exponent)
    exact = int(whole + fraction) * int("".join(map(str, digits))) * (-1 if sign else 1)
    unit = 10 ** max(places - _PLACES, 0)
    scaled, rest = divmod(exact * 10 ** max(_PLACES - places, 0), unit)
    scaled += 2 * rest > unit or (2 * rest == unit and scaled % 2 == 1)
    # Made from text: arithmetic of decimals would round to the 28 digits of the default context.
    return Decimal(f"{scaled}e-{_PLACES}") if abs(scaled) < _LIMIT else None


def priced_denied(scope: Scope) -> DataFrame:
    """Transfers of denied tokens that have a price."""
    rows = routed(scope)
    denied = rows.sparkSession.createDataFrame(load_reference(scope.reference).denied_table())
    denied = denied.toDF("origin_chain", "origin_address")
    return (
        rows.join(F.broadcast(denied), ["origin_chain", "origin_address"], "left_semi")
        .where("token_price_usd IS NOT NULL OR notional_usd IS NOT NULL")
        .selectExpr("date", "row_key AS place", "'no price' AS expected", "token_price_usd AS found")
    )


def far_quotes(scope: Scope) -> DataFrame:
    """Transfers priced by a quote from outside the window."""
    seconds = round(scope.window_hours * 3600)
    rows = routed(scope).withColumn(
        "off", F.expr("abs(unix_seconds(price_timestamp) - unix_seconds(timestamp))")
    )
    return rows.where(f"off > {seconds}").selectExpr(
        "date", "row_key AS place", f"'a quote within {seconds} s' AS expected", "off || ' s' AS found"
    )


def lost_quotes(scope: Scope) -> DataFrame:
    """Transfers whose quote is not kept in token_prices."""
    kept = scope("token_prices").selectExpr(
        *("origin_chain", "origin_address", "provider AS price_source", "quote_time AS price_timestamp"),
        "price_usd AS token_price_usd",
    )
    priced = routed(scope).where("token_price_usd IS NOT NULL")
    return priced.join(kept, kept.columns, "left_anti").selectExpr(
        "date", "row_key AS place", "'its quote in token_prices' AS expected", "'none' AS found"
    )


def unpriced(scope: Scope) -> DataFrame:
    """Days on which too large a share of transfers with a known amount has no value."""
    days = scope("token_transfer_details").where("amount IS NOT NULL").groupBy("date")
    share = days.agg(F.avg(F.expr("if(notional_usd IS NULL, 1.0, 0.0)")).alias("share"))
    return share.where(f"share > {UNPRICED_AT_MOST}").selectExpr(
        "date",
        "'share without value' AS place",
        f"'at most {UNPRICED_AT_MOST:.0%}' AS expected",
        "format_string('%.0f%%', cast(share * 100 AS double)) AS found",
    )


def missing_prices(scope: Scope) -> DataFrame:
    """Days on which a larger share of transfers lacks a price than the configuration allows. Only tokens that
    providers know count: those that a list gives a CoinGecko id and that are not denied."""
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


def unexplained(scope: Scope) -> DataFrame:
    """Days that count more quarantined VAAs than quarantine holds (it also holds what names no chain)."""
    held = scope("quarantine").groupBy("date").agg(F.count("*").alias("held"))
    counted = scope("messages_daily").groupBy("date").agg(F.sum("quarantined").alias("counted"))
    rows = counted.join(held, "date", "left").selectExpr("date", "counted", "coalesce(held, 0) AS held")
    return rows.where("counted > held").selectExpr(
        "date", "'quarantined' AS place", "'at most ' || held AS expected", "counted AS found"
    )


def _told(rows: DataFrame) -> DataFrame:
    texts = (f"coalesce(cast({name} AS string), 'null') AS {name}" for name in ("expected", "found"))
    return rows.selectExpr("date", "place", *texts)
