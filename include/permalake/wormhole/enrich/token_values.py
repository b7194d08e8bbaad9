"""What moved tokens are and are worth, from known records and quotes: the same for days and a live head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from permalake.config import Settings
from permalake.config.services import PricesSettings
from permalake.contracts.sql_text import same
from permalake.engine.rows import Relation
from permalake.pipeline.relations import QueryRunner, table
from permalake.wormhole.contracts.value_reasons import DENIED
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.quotes import Asking
from permalake.wormhole.enrich.stand_in_prices import stand_in_prices
from permalake.wormhole.reference import Reference, TokenId
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.moved_tokens import MOMENTS, TOKENS
from permalake.wormhole.tables.nearest_quotes import (
    CHECKING,
    COUNTING,
    LACK,
    LACKS,
    NEAREST,
    PRICED,
    TOKEN,
    WANT,
    WANT_COLUMNS,
    WANT_KEY,
    WANTS,
    compared,
    quoted,
    unpriced,
)
from permalake.wormhole.tables.token_metadata import ENTRIES, ENTRY, completed

_DENIED, _LEFT, _LEFT_TOKENS, _COMPARED = "denied_tokens", "left_wants", "left_tokens", "compared_quotes"
_TOKEN_ID = pa.schema([(TOKEN[0], pa.int32()), (TOKEN[1], pa.string())])


@dataclass(frozen=True)
class PriceSources:
    """Who is asked for prices.

    Attributes:
        providers: Those that give prices, the first one first.
        cross_check: The one whose quotes are compared with theirs.
        rules: Which quotes count.
    """

    providers: Sequence[PriceProvider]
    cross_check: PriceProvider | None
    rules: PricesSettings


def price_sources(settings: Settings, cache: PriceCache, asking: Asking) -> PriceSources:
    """Open the configured providers.

    Raises:
        ConfigError: A provider cannot be used; the message names the key.
    """
    return PriceSources(
        price_providers.providers(settings, cache, asking),
        price_providers.cross_check(settings, cache, asking),
        settings.prices,
    )


class TokenValues(NamedTuple):
    """What queries of ``enriched_tables`` read of tokens and their quotes.

    Attributes:
        inputs: ``METADATA``, ``QUOTES``, ``CHECKS`` and ``FALLBACK_PRICES``.
        quotes: Those that serve, or would with more confidence (``NEAREST``).
    """

    inputs: Mapping[str, Relation]
    quotes: Sequence[Relation]


def token_values(
    runner: QueryRunner, given: Mapping[str, Relation], reference: Reference, sources: PriceSources
) -> TokenValues:
    """Find the records and quotes of moved tokens.

    Args:
        runner: Runs the queries.
        given: ``TOKENS`` and ``MOMENTS`` of ``moved_tokens``, ``ATTESTED`` records of the tokens' days, and
            ``ANSWERS`` of their chains.
        reference: Listed and denied tokens, and what stands in for whom.
        sources: Who is asked for prices.
    """
    rules = sources.rules
    first = runner.results(
        {made.METADATA: completed(TOKENS, made.ANSWERS), WANTS: priceable(MOMENTS)},
        {made.METADATA: made.INPUTS[made.METADATA], WANTS: WANT},
        {**given, **reference_tokens(reference)},
    )
    wants = first[WANTS]
    priced = price_providers.priced(runner, sources.providers, wants, rules)
    checks: Relation = NEAREST.empty_table()
    quotes = [priced]
    if sources.cross_check is not None:
        query = f"SELECT {WANT_COLUMNS} FROM {PRICED}"
        checked = runner.results({WANTS: query}, {WANTS: WANT}, {PRICED: priced})[WANTS]
        checks = price_providers.priced(runner, [sources.cross_check], checked, rules)
        both = {PRICED: priced, CHECKING: checks}
        priced = runner.results({_COMPARED: compared(rules)}, {_COMPARED: NEAREST}, both)[_COMPARED]
        quotes = [priced, checks]
    left = runner.results(
        {_LEFT: unpriced(WANTS, PRICED), _LEFT_TOKENS: f"SELECT DISTINCT {', '.join(TOKEN)} FROM {_LEFT}"},
        {_LEFT: WANT, _LEFT_TOKENS: _TOKEN_ID},
        {WANTS: wants, PRICED: priced},
    )
    fallback = stand_in_prices(runner, reference, sources.providers, left[_LEFT], rules)
    quotes += [] if fallback.quotes is None else [fallback.quotes]
    tokens = table(left[_LEFT_TOKENS])
    ids = zip(*(tokens[name].to_pylist() for name in TOKEN), strict=True)
    last = runner.results(
        {made.QUOTES: quoted(MOMENTS), made.CHECKS: f"SELECT * FROM {CHECKING} WHERE {COUNTING}"},
        {name: made.INPUTS[name] for name in (made.QUOTES, made.CHECKS)},
        {
            MOMENTS: given[MOMENTS],
            PRICED: priced,
            CHECKING: checks,
            LACKS: _lacks(reference, sources.providers, ids),
        },
    )
    return TokenValues({**first, **last, made.FALLBACK_PRICES: fallback.prices}, quotes)


def priceable(wants: str) -> str:
    """Return the query of the distinct wants of tokens that are not denied (of :func:`reference_tokens`)."""
    return f"""
SELECT DISTINCT {", ".join(f"wanted.{name}" for name in WANT_KEY)} FROM {wants} AS wanted
ANTI JOIN {_DENIED} AS denied ON {same("wanted", "denied", *TOKEN)}
"""


def reference_tokens(reference: Reference) -> dict[str, pa.Table]:
    """Return the token list and the denied tokens, as queries read them."""
    denied = reference.denied_table().rename_columns(list(TOKEN))
    return {ENTRIES: reference.token_table().select(ENTRY.names), _DENIED: denied}


def listed_tokens(reference: Reference) -> pa.Table:
    """Return the tokens of the token list, which the governor counts."""
    return reference.token_table().select(["chain", "token_address"]).rename_columns(list(TOKEN))


def _lacks(reference: Reference, providers: Sequence[PriceProvider], tokens: Iterable[TokenId]) -> pa.Table:
    """Return why tokens have no quote at all."""
    reasons = dict.fromkeys(reference.denied, DENIED) | price_providers.lacks(providers, tokens)
    rows = [(*token, reason) for token, reason in reasons.items()]
    return pa.Table.from_pylist([dict(zip(LACK.names, row, strict=True)) for row in rows], schema=LACK)
