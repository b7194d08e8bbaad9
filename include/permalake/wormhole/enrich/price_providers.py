"""The configured providers of token prices, and the choice among their quotes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from permalake.config import Settings
from permalake.config.services import PriceSource, PricesSettings, price_providers
from permalake.engine.rows import Relation
from permalake.errors import ConfigError
from permalake.net.http import RetryPolicy
from permalake.pipeline.relations import QueryRunner
from permalake.wormhole.contracts.value_reasons import BY_PROVIDER
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.provider_context import ProviderContext
from permalake.wormhole.enrich.quotes import ORDINARY, Asking
from permalake.wormhole.reference import TokenId
from permalake.wormhole.tables.nearest_quotes import (
    NEAREST,
    PRICED,
    QUOTES,
    WANT,
    WANT_COLUMNS,
    WANTS,
    nearest,
    unpriced,
)

_PACKAGE = "permalake.wormhole.enrich.providers"
_LEFT = "left_wants"


class PriceProvider(Protocol):
    """A source of quotes. A token is (origin_chain, origin_address), never its symbol."""

    def quotes(self, runner: QueryRunner, wants: Relation) -> Relation:
        """Return quotes (``QUOTE``) that may serve distinct wants (``WANT``).

        There may be more than is needed; a token that the provider does not know is no error.
        """
        ...

    def lack(self, token: TokenId) -> str:
        """Return why a token that was wanted has no quote here, one of ``BY_PROVIDER``."""
        ...


class _Module(Protocol):
    """A module of :data:`_PACKAGE`."""

    def open_provider(self, context: ProviderContext) -> PriceProvider: ...


def priced(
    runner: QueryRunner, providers: Sequence[PriceProvider], wants: Relation, rules: PricesSettings
) -> Relation:
    """Return the quote nearest to each want (``NEAREST``), from the first provider whose quote counts.

    Where no provider's counts, it is the quote of the first that has one, with the reason.
    """
    chosen: list[Relation] = []
    for number, provider in enumerate(providers):
        queries, schemas = {PRICED: nearest(rules)}, {PRICED: NEAREST}
        if number + 1 < len(providers):
            queries |= {_LEFT: unpriced(WANTS, PRICED)}
            schemas |= {_LEFT: WANT}
        results = runner.results(queries, schemas, {WANTS: wants, QUOTES: provider.quotes(runner, wants)})
        chosen.append(results[PRICED])
        wants = results.get(_LEFT, wants)
    if len(chosen) == 1:
        return chosen[0]
    given = {f"of_provider_{number}": rows for number, rows in enumerate(chosen)}
    every = " UNION ALL ".join(
        f"SELECT *, {number} AS place FROM {name}" for number, name in enumerate(given)
    )
    query = f"""
SELECT * EXCLUDE (place) FROM ({every}) AS every
QUALIFY row_number() OVER (PARTITION BY {WANT_COLUMNS} ORDER BY reason IS NOT NULL, place) = 1
"""
    return runner.results({PRICED: query}, {PRICED: NEAREST}, given)[PRICED]


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
    retry_policy: RetryPolicy | None = None,
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
            ProviderContext(settings, source, source_key, cache, asking, retry_policy)
        )
        for name, source, source_key in sources
    ]


def cross_check(
    settings: Settings,
    cache: PriceCache,
    asking: Asking = ORDINARY,
    retry_policy: RetryPolicy | None = None,
) -> PriceProvider | None:
    """Open the provider whose quotes are compared with those in use; None where none is configured."""
    source = settings.prices.cross_check
    if source is None:
        return None
    module = _module("prices.cross_check.provider", source.provider)
    return module.open_provider(ProviderContext(settings, source, None, cache, asking, retry_policy))


def _module(setting: str, provider: str) -> _Module:
    if provider not in price_providers():
        raise ConfigError(
            f"{setting}: {provider} is no price provider; choose {', '.join(price_providers())}"
        )
    return cast(_Module, importlib.import_module(f"{_PACKAGE}.{provider}"))
