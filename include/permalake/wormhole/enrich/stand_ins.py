"""Stand-in prices: a dollar for a stablecoin, the wrapped asset's quote for what wraps it.

They never become ``token_price_usd``: a peg may be lost and a bridge robbed. They fill columns of their own,
for transfers that have no quote, with the coins of the reference data's ``stand_ins.csv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from permalake.config import PricesSettings
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.reference import DOLLAR, Reference
from permalake.wormhole.tables.nearest_quotes import TOKEN, WANTED

_ASSET = ("asset_chain", "asset_address")
_KNOWN = pa.schema(
    [
        (TOKEN[0], pa.int32()),
        (TOKEN[1], pa.string()),
        ("stand_in", pa.string()),
        ("until", pa.date32()),
        (_ASSET[0], pa.int32()),
        (_ASSET[1], pa.string()),
    ]
)


class StandIns(NamedTuple):
    """The prices of unpriced wants, and the quotes that they are made of.

    ``prices``: origin_chain, origin_address, at, stand_in, stand_in_price_usd, stand_in_timestamp (null for a
    dollar), at most one per want. ``quotes``: as of :func:`price_providers.priced`. None: there are none.
    """

    prices: DataFrame | None
    quotes: DataFrame | None


def stand_ins(
    spark: SparkSession,
    reference: Reference,
    providers: Sequence[PriceProvider],
    unpriced: DataFrame,
    rules: PricesSettings,
) -> StandIns:
    """Return stand-in prices of the wants in ``unpriced`` (origin_chain, origin_address, at)."""
    known = spark.createDataFrame(_known(reference))
    open_wants = unpriced.join(F.broadcast(known), list(TOKEN))
    in_time = F.col("until").isNull() | (F.col("at").cast("date") < F.col("until"))
    open_wants = open_wants.where(in_time).localCheckpoint()
    if open_wants.isEmpty():
        return StandIns(None, None)
    dollars = open_wants.where(F.col("stand_in") == DOLLAR).select(
        *WANTED,
        "stand_in",
        F.lit(1).cast("decimal(38,18)").alias("stand_in_price_usd"),
        F.lit(None).cast("timestamp").alias("stand_in_timestamp"),
    )
    wrapping = open_wants.where(F.col("stand_in") != DOLLAR)
    assets = wrapping.select(
        F.col(_ASSET[0]).alias(TOKEN[0]), F.col(_ASSET[1]).alias(TOKEN[1]), "at"
    ).distinct()
    quotes = price_providers.priced(spark, providers, assets, rules)
    return StandIns(dollars.unionByName(_of_assets(wrapping, quotes)), quotes)


def _of_assets(wrapping: DataFrame, quotes: DataFrame) -> DataFrame:
    """Return the nearest quote among an asset's tokens; of two equally near that of the first token."""
    of_asset = quotes.where("reason IS NULL").select(
        *(F.col(name).alias(alias) for name, alias in zip(TOKEN, _ASSET, strict=True)),
        "at",
        F.col("price_usd").alias("stand_in_price_usd"),
        F.col("quote_time").alias("stand_in_timestamp"),
    )
    both = wrapping.join(of_asset, [*_ASSET, "at"])
    distance = F.abs(F.unix_micros("stand_in_timestamp") - F.unix_micros("at"))
    order = Window.partitionBy(*WANTED).orderBy(distance, *_ASSET)
    first = both.withColumn("place", F.row_number().over(order)).where("place = 1")
    return first.select(*WANTED, "stand_in", "stand_in_price_usd", "stand_in_timestamp")


def _known(reference: Reference) -> pa.Table:
    """Return a row per token with a stand-in, and per token of the asset that it wraps."""
    by_coin: dict[str, list[tuple[int, str]]] = {}
    for token_id, token in sorted(reference.tokens.items()):
        if token.coingecko_id and token_id not in reference.denied:
            by_coin.setdefault(token.coingecko_id, []).append(token_id)
    rows: list[tuple[int, str, str, date | None, int | None, str | None]] = []
    for coin, (asset, until) in reference.stand_ins.items():
        none: list[tuple[int | None, str | None]] = [(None, None)]
        assets = none if asset == DOLLAR else by_coin.get(asset, [])
        rows += [(*token_id, asset, until, *of) for token_id in by_coin.get(coin, []) for of in assets]
    return pa.Table.from_pylist([dict(zip(_KNOWN.names, row, strict=True)) for row in rows], schema=_KNOWN)
