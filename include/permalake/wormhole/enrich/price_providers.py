"""Who tells what a token was worth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from permalake.config import PriceSource, Settings
from permalake.net.http import Patience, Service
from permalake.wormhole.enrich import coingecko, defillama
from permalake.wormhole.enrich.file_prices import FilePrices
from permalake.wormhole.enrich.price_service import Cache, Market
from permalake.wormhole.enrich.quotes import PriceService
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.nearest_quotes import WANTED, nearest


class PriceProvider(Protocol):
    """A source of quotes. Identity of a token is (origin_chain, origin_address), never its symbol."""

    def quotes(self, spark: SparkSession, wanted: DataFrame) -> DataFrame:
        """Quotes that may serve the wanted (origin_chain, origin_address, at): (origin_chain, origin_address,
        provider, quote_time, price_usd decimal(38,18)). It may give more than is needed, never an error for
        a token that it does not know."""
        ...


def priced(
    spark: SparkSession, providers: Sequence[PriceProvider], wanted: DataFrame, window_hours: float
) -> DataFrame:
    """The quote nearest to each want, as :func:`nearest` gives it, from the first provider that has one."""
    found: list[DataFrame] = []
    open_wants = wanted.localCheckpoint()
    for number, provider in enumerate(providers):
        here = nearest(open_wants, provider.quotes(spark, open_wants), window_hours)
        found.append(here.localCheckpoint())
        if number + 1 < len(providers):
            open_wants = open_wants.join(found[-1], list(WANTED), "left_anti")
    return reduce(DataFrame.unionByName, found)


def providers(
    settings: Settings, cache: Cache, again: bool = False, patience: Patience | None = None
) -> list[PriceProvider]:
    """The configured provider and its fallbacks, in the order in which they are asked.

    A ``prices.path`` beside a service is the last resort. :class:`ConfigError` when one cannot be used.
    """
    chosen = settings.prices
    key = chosen.api_key.get_secret_value() if chosen.api_key else None
    window = chosen.window_hours
    found = [_provider(settings, chosen, key, cache=cache, again=again, patience=patience)]
    found += [
        _provider(settings, source, None, cache=cache, again=again, patience=patience)
        for source in chosen.fallback
    ]
    if chosen.provider != "file" and chosen.path is not None:
        found.append(FilePrices(chosen.path, window))
    return found


def _provider(
    settings: Settings,
    source: PriceSource,
    key: str | None,
    *,
    cache: Cache,
    again: bool,
    patience: Patience | None,
) -> PriceProvider:
    window_hours = settings.prices.window_hours
    if source.provider == "file":
        return FilePrices(source.path, window_hours)
    reference = load_reference(settings.wormhole.reference if settings.wormhole else None)
    seconds = window_hours * 3600
    service: PriceService
    if source.provider == "coingecko":
        base = coingecko.base(source.url, key)
        headers = coingecko.headers(base, key)
        asked = Service(coingecko.NAME, base, source.rate_per_second, headers, patience)
        service = coingecko.CoinGecko(asked, reference.chains, seconds)
    else:
        base = defillama.base(source.url, key)
        asked = Service(defillama.NAME, base, source.rate_per_second, None, patience)
        service = defillama.DefiLlama(asked, reference.chains, seconds)
    return Market(service, cache, reference, window_hours, again=again)
