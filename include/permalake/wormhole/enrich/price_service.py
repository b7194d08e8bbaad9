"""Prices from a service, each requested once: stored in ``token_prices``, with a memory of the requests.

A token is requested by the service's own name of it: that of a coin in the token list, else its address.
Several tokens may share a coin (USDC on two chains): it is requested once, and the quotes of one token serve
the others. The token list may be corrected: quotes that were requested as another coin do not serve then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby, islice
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from permalake.config.services import PricesSettings
from permalake.contracts.sql_text import same
from permalake.engine.rows import Relation
from permalake.intervals import Span, joined, without
from permalake.pipeline.relations import QueryRunner, table
from permalake.wormhole.codec.native_addresses import native_tokens
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.contracts.value_reasons import NO_QUOTE, NOT_ANSWERED, NOT_ASKED, NOT_LISTED
from permalake.wormhole.enrich.quotes import (
    ORDINARY,
    Ask,
    Asking,
    Coin,
    PriceAnswer,
    PriceService,
    Quote,
    invalid_quotes,
)
from permalake.wormhole.reference import Reference, TokenId
from permalake.wormhole.tables.nearest_quotes import (
    PRICED,
    QUOTE,
    QUOTES,
    TOKEN,
    WANT,
    WANTS,
    nearest,
)
from permalake.wormhole.tables.used_quotes import SPAN, SPANS, STORED, spans, stored_near

_COINS_AT_ONCE = 200
_QUOTES_AT_ONCE = 100_000
_NAMES, _EVERY_NAME, _NEEDS = "coin_names", "every_coin_name", "needed_buckets"
_KEPT, _LEFT = "kept_quotes", "left_wants"
_NEED = pa.schema([("coin", pa.string()), *((name, pa.int64()) for name in ("bucket", "first", "last"))])
Need = Mapping[str, Any]
"""A time bucket of a coin with wants: ``coin``, and their ``first`` and ``last`` second."""


class RequestMemory(Protocol):
    """The memory of requests to a service: spans of coins, and when they were requested."""

    def requests(self, coins: Iterable[str]) -> dict[str, list[tuple[Span, int]]]:
        """Return the requests for some coins."""
        ...

    def remember(self, answered: dict[str, list[Span]], asked_at: int) -> None:
        """Record that these spans were answered."""
        ...


@dataclass(frozen=True)
class PriceCache:
    """The store of quotes, made of the functions of a job.

    Attributes:
        quotes: Returns the stored quotes of the days from the first to the last: rows of ``token_prices``.
        keep: Stores new rows at once and for good; returns how many were new.
        asked: Returns the memory of requests to a provider.
        note: Notes a remark on the days that are built.
    """

    quotes: Callable[[date, date], Relation]
    keep: Callable[[pa.Table], int]
    asked: Callable[[str], RequestMemory]
    note: Callable[[str], None]


class CachedPriceService:
    """A price service behind its cache, which is a price provider."""

    def __init__(
        self,
        service: PriceService,
        cache: PriceCache,
        reference: Reference,
        rules: PricesSettings,
        asking: Asking = ORDINARY,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._service = service
        self._cache = cache
        self._reference = reference
        self._rules = rules
        self._asking = asking
        self._clock = clock
        self._asked = cache.asked(service.name)
        self._now: dict[str, list[tuple[Span, int]]] = {}
        self._unanswered: set[str] = set()
        self._unlisted: set[str] = set()
        self._forbidden: dict[str, str] = {}
        self._fault = ""
        self._not_asked: set[str] = set()
        self._invalid = 0
        self._names: dict[TokenId, str] = {}

    def quotes(self, runner: QueryRunner, wants: Relation) -> Relation:
        """Return quotes of the wanted tokens and fetch what is missing.

        A fault of the service is a note, never an error.
        """
        want_spans = table(runner.results({SPANS: spans(WANTS)}, {SPANS: SPAN}, {WANTS: wants})[SPANS])
        tokens = self._tokens(want_spans)
        self._names |= tokens
        days = days_within_reach(want_spans, self._rules.window_hours)
        if not tokens or days is None:
            return QUOTE.empty_table()
        names = _name_table(tokens)
        if self._asking.stored:
            self._not_asked |= set(tokens.values()) - self._asked.requests(set(tokens.values())).keys()
        else:
            self._fetch(self._needs(runner, wants, names), self._asked.requests, tokens)
        quotes = self._kept(runner, want_spans, days, names, tokens)
        if self._asking.again and not self._asking.stored:
            without_price = self._without_price(runner, wants, quotes)
            needs = self._needs(runner, without_price, names)
            self._fetch(needs, lambda _coins: self._now, tokens, fresh=True)
            quotes = self._kept(runner, want_spans, days, names, tokens)
        if self._invalid:
            self._cache.note(invalid_quotes(self._service.name, self._invalid))
            self._invalid = 0
        if self._unanswered:
            count = len(self._unanswered)
            self._cache.note(
                f"prices: {self._fault}; {count} token{'s' * (count > 1)} without an answer, fill in later "
                "with --only enrich"
            )
        if self._forbidden:
            count, reason = len(self._forbidden), next(iter(self._forbidden.values()))
            self._cache.note(
                f"prices: {reason}; {count} token{'s' * (count > 1)} without a quote, raise the plan or name "
                "another provider in prices.fallback, then fill in with --only enrich"
            )
        return quotes

    def lack(self, token: TokenId) -> str:
        """Return why a token that was wanted has no quote here."""
        name = self._names.get(token)
        if name is None or name in self._unlisted:
            return NOT_LISTED
        if name in self._not_asked:
            return NOT_ASKED
        return NOT_ANSWERED if name in self._unanswered or name in self._forbidden else NO_QUOTE

    # -- Inside --------------------------------------------------------------------------------------

    def _tokens(self, tokens: pa.Table) -> dict[TokenId, str]:
        """Return the service's names of distinct tokens, as far as it can know them."""
        native = native_tokens(
            tokens[TOKEN[0]].combine_chunks(), tokens[TOKEN[1]].combine_chunks(), self._reference.chains
        )
        named = {}
        for chain, address, form in zip(
            tokens[TOKEN[0]].to_pylist(), tokens[TOKEN[1]].to_pylist(), native.to_pylist(), strict=True
        ):
            name = self._name(chain, address, form)
            if name is not None:
                named[(chain, address)] = name
        return named

    def _name(self, chain: int, address: str, native: str | None) -> str | None:
        listed = self._reference.tokens.get((chain, address))
        written = (listed.native_address if listed else None) or native
        return self._service.coin(Coin(chain, written, self._coingecko_id((chain, address))))

    def _coingecko_id(self, token: TokenId) -> str | None:
        listed = self._reference.tokens.get(token)
        return listed.coingecko_id if listed else None

    def _needs(self, runner: QueryRunner, wants: Relation, names: pa.Table) -> Iterator[Need]:
        """Yield each time bucket with wants, by coin."""
        query = f"""
SELECT coin, second // {self._service.bucket} AS bucket, min(second) AS first, max(second) AS last
FROM (
    SELECT coin, epoch_us(wanted.at) // 1000000 AS second
    FROM {WANTS} AS wanted JOIN {_NAMES} AS named ON {same("wanted", "named", *TOKEN)}
) AS seconds
GROUP BY coin, second // {self._service.bucket} ORDER BY coin, bucket
"""
        needs = runner.results({_NEEDS: query}, {_NEEDS: _NEED}, {WANTS: wants, _NAMES: names})[_NEEDS]
        return (row for batch in needs.to_batches() for row in batch.to_pylist())

    def _without_price(self, runner: QueryRunner, wants: Relation, quotes: Relation) -> Relation:
        """Return the wants that no quote is near to."""
        priced = nearest(self._rules)
        left = f"""
SELECT wanted.* FROM {WANTS} AS wanted ANTI JOIN {PRICED} AS near ON {same("wanted", "near", *WANT.names)}
"""
        given = {WANTS: wants, QUOTES: quotes}
        return runner.results({PRICED: priced, _LEFT: left}, {_LEFT: WANT}, given)[_LEFT]

    def _fetch(
        self,
        needs: Iterator[Need],
        requests: Callable[[list[str]], dict[str, list[tuple[Span, int]]]],
        tokens: dict[TokenId, str],
        *,
        fresh: bool = False,
    ) -> None:
        by_coin = ((coin, list(rows)) for coin, rows in groupby(needs, lambda row: row["coin"]))
        while some := dict(islice(by_coin, _COINS_AT_ONCE)):
            before = requests(list(some))
            asks = [
                Ask(coin, span)
                for coin, rows in some.items()
                for span in self._open(rows, before.get(coin, []))
            ]
            if asks:
                self._take(asks, tokens, fresh)

    def _open(self, rows: list[Need], asked: list[tuple[Span, int]]) -> list[Span]:
        """Return the spans to request, so that each want gets its nearest quote."""
        spans: list[Span] = []
        for row in rows:
            # A span that was asked for after a want is done with for it, though it may not have been over.
            done = [(a, b if at >= row["last"] else min(b, at)) for (a, b), at in asked]
            spans += without(self._service.needed(row["first"], row["last"]), done)
        now = self._clock()
        return [span for span in joined(spans) if span[0] < now]

    def _take(self, asks: list[Ask], tokens: dict[TokenId, str], fresh: bool) -> None:
        """Request, store the quotes, then remember the request: killed in between, it is sent again."""
        begun = int(self._clock())
        answers: list[PriceAnswer] = []
        answered: set[str] = set()
        faulted: set[str] = set()
        size = 0
        for answer in self._service.answers(asks, fresh):
            coins = {ask.coin for ask in answer.asks}
            if answer.fault is not None:
                self._fault = self._fault or answer.fault
                faulted |= coins
                continue
            if answer.forbidden is not None:
                self._forbidden |= dict.fromkeys(coins, answer.forbidden)
            answered |= coins
            self._unlisted = self._unlisted | coins if answer.unlisted else self._unlisted - coins
            answers.append(answer)
            size += len(answer.quotes)
            if size >= _QUOTES_AT_ONCE:
                self._settle(answers, begun, tokens)
                answers, size = [], 0
        self._settle(answers, begun, tokens)
        self._unanswered = self._unanswered - answered | faulted

    def _settle(self, answers: list[PriceAnswer], begun: int, tokens: dict[TokenId, str]) -> None:
        valid = [quote for answer in answers for quote in answer.quotes if quote.usd is not None]
        invalid = [quote for answer in answers for quote in answer.quotes if quote.usd is None]
        self._invalid += len(invalid)
        if valid:
            coins = {name for token, name in tokens.items() if self._coingecko_id(token)}
            now = int(self._clock() * 1_000_000)
            rows = _quote_table(valid, tokens, coins, self._service.name, now)
            self._cache.keep(rows)
        # A service may mend what is no price: a coin that has nothing else is asked for again.
        broken = {quote.coin for quote in invalid} - {quote.coin for quote in valid}
        answered: dict[str, list[Span]] = {}
        for answer in answers:
            for ask in answer.asks:
                if answer.is_settled and ask.coin not in broken:
                    answered.setdefault(ask.coin, []).append(ask.span)
                if not answer.remembered:
                    self._now.setdefault(ask.coin, []).append((ask.span, begun))
        if answered:
            self._asked.remember(answered, begun)

    def _kept(
        self,
        runner: QueryRunner,
        want_spans: pa.Table,
        days: tuple[date, date],
        names: pa.Table,
        tokens: dict[TokenId, str],
    ) -> Relation:
        """Return stored quotes within reach of the wants, by wanted token: its own before those of others.

        A quote is one of the coin that was requested; of its token's where none is known.
        """
        is_own = f"({same('quoted', 'called', *TOKEN)})"
        query = f"""
WITH near AS ({stored_near(self._service.name, self._rules.window_hours)}
), quoted AS (
    SELECT near.*, coalesce(near.coin, named.coin) AS name
    FROM near LEFT JOIN {_EVERY_NAME} AS named ON {same("near", "named", *TOKEN)}
), offered AS (
    SELECT {", ".join(f"called.{name}" for name in TOKEN)}, provider, quote_time, price_usd, confidence,
        CASE WHEN {is_own} THEN quoted.coin ELSE called.coin END AS coin, {is_own} AS is_own
    FROM quoted JOIN {_NAMES} AS called ON quoted.name = called.coin
)
SELECT * FROM offered QUALIFY row_number() OVER (
    PARTITION BY {", ".join(TOKEN)}, provider, quote_time
    ORDER BY is_own DESC, price_usd, confidence NULLS FIRST
) = 1
"""
        given = {
            STORED: self._cache.quotes(*days),
            SPANS: want_spans,
            _NAMES: names,
            _EVERY_NAME: _name_table(tokens | self._siblings(tokens)),
        }
        return runner.results({_KEPT: query}, {_KEPT: QUOTE}, given)[_KEPT]

    def _siblings(self, tokens: dict[TokenId, str]) -> dict[TokenId, str]:
        """Return listed tokens for which the service has the name of a wanted one."""
        names = set(tokens.values())
        return {
            token_id: name
            for token_id, token in self._reference.tokens.items()
            if token.coingecko_id and (name := self._name(*token_id, None)) in names and name is not None
        }


def _name_table(tokens: dict[TokenId, str]) -> pa.Table:
    return pa.table(
        {
            TOKEN[0]: pa.array([chain for chain, _ in tokens], pa.int32()),
            TOKEN[1]: pa.array([address for _, address in tokens], pa.string()),
            "coin": pa.array(list(tokens.values()), pa.string()),
        }
    )


def _quote_table(
    quotes: Iterable[Quote], tokens: dict[TokenId, str], coins: set[str], provider: str, fetched_at: int
) -> pa.Table:
    """Return rows of ``token_prices``: one per quote and wanted token of that name.

    ``coins``: which names are those of coins in the token list.
    """
    called: dict[str, list[TokenId]] = {}
    for token_id, name in tokens.items():
        called.setdefault(name, []).append(token_id)
    rows = {(token_id, quote.micros): quote for quote in quotes for token_id in called[quote.coin]}
    moments = pa.array([micros for _, micros in rows], pa.timestamp("us", tz="UTC"))
    columns = {
        TOKEN[0]: [chain for (chain, _), _ in rows],
        TOKEN[1]: [address for (_, address), _ in rows],
        "provider": [provider] * len(rows),
        "quote_time": moments,
        "price_usd": [quote.usd for quote in rows.values()],
        "fetched_at": [fetched_at] * len(rows),
        "confidence": [quote.confidence for quote in rows.values()],
        "former_price_usd": [None] * len(rows),
        "corrected_at": [None] * len(rows),
        "coin": [quote.coin if quote.coin in coins else None for quote in rows.values()],
        "date": moments.cast(pa.date32()),
    }
    schema = TOKEN_PRICES.arrow
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def days_within_reach(want_spans: pa.Table, window_hours: float) -> tuple[date, date] | None:
    """Return the first and last UTC day of quotes that may serve these spans; None if there are none."""
    if not len(want_spans):
        return None
    reach = timedelta(hours=window_hours)
    first, last = pc.min(want_spans["first"]).as_py(), pc.max(want_spans["last"]).as_py()
    return (first - reach).date(), (last + reach).date()
