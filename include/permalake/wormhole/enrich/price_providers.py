"""The configured providers of token prices, and the choice among their quotes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Protocol, cast

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from permalake.config import PriceSource, PricesSettings, Settings, price_providers
from permalake.errors import ConfigError
from permalake.net.http import Patience
from permalake.wormhole.contracts.value_reasons import BY_PROVIDER
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.provider_context import ProviderContext
from permalake.wormhole.enrich.quotes import ORDINARY, Asking
from permalake.wormhole.reference import TokenId
from permalake.wormhole.tables.nearest_quotes import WANTED, nearest

_PACKAGE = "permalake.wormhole.enrich.providers"


class PriceProvider(Protocol):
    """A source of quotes. A token is (origin_chain, origin_address), never its symbol."""

    def quotes(self, spark: SparkSession, wanted: DataFrame) -> DataFrame:
        """Return quotes that may serve the wanted (origin_chain, origin_address, at).

        Columns: origin_chain, origin_address, provider, quote_time, price_usd decimal(38,18), confidence
        double. There may be more than is needed; a token that the provider does not know is no error.
        """
        ...

    def lack(self, token: TokenId) -> str:
        """Return why a token that was wanted has no quote here, one of ``BY_PROVIDER``."""
        ...


class _Module(Protocol):
    """A module of :data:`_PACKAGE`."""

    def open_provider(self, context: ProviderContext) -> PriceProvider: ...


def priced(
    spark: SparkSession, providers: Sequence[PriceProvider], wanted: DataFrame, rules: PricesSettings
) -> DataFrame:
    """Return the quote nearest to each want, from the first provider whose quote counts.

    Columns: see :func:`nearest`. Where no provider's counts, it is the quote of the first that has one, with
    the reason.
    """
    quotes: list[DataFrame] = []
    open_wants = wanted.localCheckpoint()
    for number, provider in enumerate(providers):
        here = nearest(open_wants, provider.quotes(spark, open_wants), rules)
        quotes.append(here.withColumn("place", F.lit(number)).localCheckpoint())
        if number + 1 < len(providers):
            open_wants = open_wants.join(quotes[-1].where("reason IS NULL"), list(WANTED), "left_anti")
    every = reduce(DataFrame.unionByName, quotes)
    if len(quotes) > 1:
        order = Window.partitionBy(*WANTED).orderBy(F.col("reason").isNotNull(), "place")
        every = every.withColumn("rank", F.row_number().over(order)).where("rank = 1").drop("rank")
    return every.drop("place")


def lacks(providers: Sequence[PriceProvider], tokens: Iterable[TokenId]) -> dict[TokenId, str]:
    """Return why tokens that were wanted of all providers have no quote."""
    return {
        token: min((provider.lack(token) for provider in providers), key=BY_PROVIDER.index)
        for token in tokens
    }


def providers(
    settings: Settings,
    cache: PriceCache,
    asking: Asking = ORDINARY,
    patience: Patience | None = None,
) -> list[PriceProvider]:
    """Open the configured provider and its fallbacks, in the order in which they are asked.

    A ``prices.path`` beside a service is the last resort.

    Raises:
        ConfigError: A provider cannot be used; the message names the key.
    """
    chosen = settings.prices
    key = chosen.api_key.get_secret_value() if chosen.api_key else None
    sources: list[tuple[str, PriceSource, str | None]] = [("prices.provider", chosen, key)]
    sources += [
        (f"prices.fallback.{number}.provider", source, None) for number, source in enumerate(chosen.fallback)
    ]
    if chosen.provider != "file" and chosen.path is not None:
        sources.append(("prices.path", PriceSource(provider="file", path=chosen.path), None))
    return [
        _module(name, source.provider).open_provider(
            ProviderContext(settings, source, own_key, cache, asking, patience)
        )
        for name, source, own_key in sources
    ]


def cross_check(
    settings: Settings,
    cache: PriceCache,
    asking: Asking = ORDINARY,
    patience: Patience | None = None,
) -> PriceProvider | None:
    """Open the provider whose quotes are compared with those in use; None where none is configured."""
    source = settings.prices.cross_check
    if source is None:
        return None
    module = _module("prices.cross_check.provider", source.provider)
    return module.open_provider(ProviderContext(settings, source, None, cache, asking, patience))


def _module(setting: str, provider: str) -> _Module:
    if provider not in price_providers():
        raise ConfigError(
            f"{setting}: {provider} is no price provider; choose {', '.join(price_providers())}"
        )
    return cast(_Module, importlib.import_module(f"{_PACKAGE}.{provider}"))
