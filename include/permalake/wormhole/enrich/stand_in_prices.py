"""Fallback prices: a dollar for a stablecoin, the wrapped asset's quote for what wraps it.

They never become ``token_price_usd``: a peg may be lost and a bridge robbed. They fill ``stand_in`` and the
columns with it, for transfers that have no quote, with the coins of the reference data's ``stand_ins.csv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import pyarrow as pa

from permalake.config.services import PricesSettings
from permalake.contracts.sql_text import same
from permalake.engine.rows import Relation
from permalake.pipeline.relations import QueryRunner, count
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.reference import DOLLAR, Reference
from permalake.wormhole.tables.enriched_tables import FALLBACK_PRICES, INPUTS
from permalake.wormhole.tables.nearest_quotes import (
    COUNTING,
    PRICED,
    TOKEN,
    WANT,
    WANT_COLUMNS,
    WANTS,
)

_ASSET = ("asset_chain", "asset_address")
_ROW = pa.schema(
    [
        (TOKEN[0], pa.int32()),
        (TOKEN[1], pa.string()),
        ("stand_in", pa.string()),
        ("until", pa.date32()),
        (_ASSET[0], pa.int32()),
        (_ASSET[1], pa.string()),
    ]
)
PRICE = INPUTS[FALLBACK_PRICES]
"""Columns of fallback prices; ``stand_in_timestamp`` is null for a dollar."""
_WRAPPED = pa.schema([*WANT, ("stand_in", pa.string()), (_ASSET[0], pa.int32()), (_ASSET[1], pa.string())])
_PRICE_COLUMNS = f"{WANT_COLUMNS}, stand_in, stand_in_price_usd, stand_in_timestamp"
_REFERENCE, _OPEN, _DOLLARS, _WRAPPING, _ASSETS, _PRICES = (
    *("tokens_with_stand_in", "open_wants", "dollars", "wrapping_wants", "asset_wants", "stand_in_prices"),
)
_QUERIES = {
    _OPEN: f"""
SELECT wanted.*, stand_in, asset_chain, asset_address
FROM {WANTS} AS wanted JOIN {_REFERENCE} AS listed ON {same("wanted", "listed", *TOKEN)}
WHERE until IS NULL OR CAST("at" AS DATE) < until
""",
    _DOLLARS: f"""
SELECT {WANT_COLUMNS}, stand_in, CAST(1 AS DECIMAL(38, 18)) AS stand_in_price_usd,
    CAST(NULL AS TIMESTAMP) AS stand_in_timestamp
FROM {_OPEN} WHERE stand_in = '{DOLLAR}'
""",
    _WRAPPING: f"SELECT * FROM {_OPEN} WHERE stand_in <> '{DOLLAR}'",
    _ASSETS: f"""
SELECT DISTINCT asset_chain AS origin_chain, asset_address AS origin_address, "at"
FROM {_OPEN} WHERE stand_in <> '{DOLLAR}'
""",
}
# The nearest quote among an asset's tokens; of two equally near that of the first token.
_ALL = f"""
WITH of_assets AS (
    SELECT wrapping.*, price_usd AS stand_in_price_usd, quote_time AS stand_in_timestamp
    FROM {_WRAPPING} AS wrapping
    JOIN (SELECT * FROM {PRICED} WHERE {COUNTING}) AS quote ON wrapping.asset_chain = quote.origin_chain
        AND wrapping.asset_address = quote.origin_address AND wrapping.at = quote.at
    QUALIFY row_number() OVER (
        PARTITION BY wrapping.origin_chain, wrapping.origin_address, wrapping.at
        ORDER BY abs(epoch_us(quote_time) - epoch_us(wrapping.at)), asset_chain, asset_address
    ) = 1
)
SELECT {_PRICE_COLUMNS} FROM {_DOLLARS}
UNION ALL
SELECT {_PRICE_COLUMNS} FROM of_assets
"""


class FallbackPrices(NamedTuple):
    """The prices of unpriced wants (:data:`PRICE`), at most one each, and the quotes that they are made of.

    ``quotes``: as of :func:`price_providers.priced`; None if no quote was wanted.
    """

    prices: Relation
    quotes: Relation | None


def stand_in_prices(
    runner: QueryRunner,
    reference: Reference,
    providers: Sequence[PriceProvider],
    unpriced: Relation,
    rules: PricesSettings,
) -> FallbackPrices:
    """Return fallback prices of the distinct wants in ``unpriced``."""
    schemas = {_DOLLARS: PRICE, _WRAPPING: _WRAPPED, _ASSETS: WANT}
    given = {WANTS: unpriced, _REFERENCE: _reference_table(reference)}
    results = runner.results(_QUERIES, schemas, given)
    if not count(results[_ASSETS]):
        return FallbackPrices(results[_DOLLARS], None)
    quotes = price_providers.priced(runner, providers, results[_ASSETS], rules)
    given = {_DOLLARS: results[_DOLLARS], _WRAPPING: results[_WRAPPING], PRICED: quotes}
    return FallbackPrices(runner.results({_PRICES: _ALL}, {_PRICES: PRICE}, given)[_PRICES], quotes)


def _reference_table(reference: Reference) -> pa.Table:
    """Return a row per token with a stand-in, and per token of the asset that it wraps."""
    by_coin: dict[str, list[tuple[int, str]]] = {}
    for token_id, token in sorted(reference.tokens.items()):
        if token.coingecko_id and token_id not in reference.denied:
            by_coin.setdefault(token.coingecko_id, []).append(token_id)
    rows: list[tuple[int, str, str, date | None, int | None, str | None]] = []
    for coin, (asset, until) in reference.stand_in_assets.items():
        none: list[tuple[int | None, str | None]] = [(None, None)]
        assets = none if asset == DOLLAR else by_coin.get(asset, [])
        rows += [(*token_id, asset, until, *of) for token_id in by_coin.get(coin, []) for of in assets]
    return pa.Table.from_pylist([dict(zip(_ROW.names, row, strict=True)) for row in rows], schema=_ROW)
