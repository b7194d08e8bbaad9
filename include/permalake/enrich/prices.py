"""Who tells what a token was worth."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from permalake.config import Settings
from permalake.enrich.file_prices import FilePrices
from permalake.errors import ConfigError


class PriceProvider(Protocol):
    """A source of quotes. Identity of a token is (origin_chain, origin_address), never its symbol."""

    def quotes(self, spark: SparkSession, wanted: DataFrame) -> DataFrame:
        """Quotes that may serve the wanted (origin_chain, origin_address, at): (origin_chain, origin_address,
        provider, quote_time, price_usd decimal(38,18)). It may give more than is needed, never an error for
        a token that it does not know."""
        ...


def provider(settings: Settings) -> PriceProvider:
    """The configured provider; :class:`ConfigError` when it cannot be used."""
    name = settings.prices.provider
    if name != "file":
        raise ConfigError(f'prices.provider: {name} cannot be asked yet; use provider = "file" and path')
    return FilePrices(settings.prices.path, settings.prices.window_hours)
