"""Prices from a service, each requested once: stored in ``token_prices``, with a memory of the requests.

A token is requested by the service's own name. Several tokens may share one (USDC on two chains): it is
requested once, and the quotes of one of them serve the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from permalake.config import PricesSettings
from permalake.intervals import Span, joined, without
from permalake.wormhole.codec.native_addresses import native_tokens
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
from permalake.wormhole.tables.nearest_quotes import TOKEN, WANTED, nearest
from permalake.wormhole.tables.used_quotes import stored_near, token_prices

_COINS_AT_ONCE = 200
_QUOTES_AT_ONCE = 100_000
_ROWS = pa.schema(
    [
        ("origin_chain", pa.int32()),
        ("origin_address", pa.string()),
        ("provider", pa.string()),
        ("quote_time", pa.timestamp("us", tz="UTC")),
        ("price_usd", pa.decimal128(38, 18)),
        ("fetched_at", pa.timestamp("us", tz="UTC")),
        ("confidence", pa.float64()),
    ]
)


class RequestMemory(Protocol):
    """The memory of requests to a service: spans of coins, and when they were requested."""

    def known(self, coins: Iterable[str]) -> dict[str, list[tuple[Span, int]]]:
        """Return the requests for some coins."""
        ...

    def remember(self, answered: dict[str, list[Span]], asked_at: int) -> None:
        """Record that these spans were answered."""
        ...


class PriceCache(Protocol):
    """The store of quotes."""

    def quotes(self, spark: SparkSession) -> DataFrame:
        """Return all stored quotes."""
        ...

    def keep(self, frame: DataFrame) -> int:
        """Store new rows at once and for good; return how many were new."""
        ...

    def asked(self, provider: str) -> RequestMemory:
        """Return the memory of requests to a provider."""
        ...

    def note(self, text: str) -> None:
        """Note a remark on the days that are built."""
        ...


class Market:
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

    def quotes(self, spark: SparkSession, wanted: DataFrame) -> DataFrame:
        """Return quotes of the wanted tokens and fetch what is missing.

        A fault of the service is a note, never an error.
        """
        tokens = self._tokens(wanted)
        self._names |= tokens
        if not tokens:
            return self._cache.quotes(spark).limit(0)
        names = spark.createDataFrame(_name_table(tokens))
        if self._asking.stored:
            self._not_asked |= set(tokens.values()) - self._asked.known(set(tokens.values())).keys()
        else:
            self._fetch(spark, self._needs(wanted, names), self._asked.known, tokens)
        found = self._kept(spark, wanted, names, tokens)
        if self._asking.again and not self._asking.stored:
            without_price = wanted.join(nearest(wanted, found, self._rules), list(WANTED), "left_anti")
            self._fetch(
                spark, self._needs(without_price, names), lambda _coins: self._now, tokens, fresh=True
            )
            found = self._kept(spark, wanted, names, tokens)
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
        return found

    def lack(self, token: TokenId) -> str:
        """Return why a token that was wanted has no quote here."""
        name = self._names.get(token)
        if name is None or name in self._unlisted:
            return NOT_LISTED
        if name in self._not_asked:
            return NOT_ASKED
        return NOT_ANSWERED if name in self._unanswered or name in self._forbidden else NO_QUOTE

    # -- Inside --------------------------------------------------------------------------------------

    def _tokens(self, wanted: DataFrame) -> dict[TokenId, str]:
        """Return the service's names of the wanted tokens, as far as it can know them."""
        table = wanted.select(*TOKEN).distinct().toArrow()
        native = native_tokens(
            table[TOKEN[0]].combine_chunks(), table[TOKEN[1]].combine_chunks(), self._reference.chains
        )
        named = {}
        for chain, address, form in zip(
            table[TOKEN[0]].to_pylist(), table[TOKEN[1]].to_pylist(), native.to_pylist(), strict=True
        ):
            name = self._name(chain, address, form)
            if name is not None:
                named[(chain, address)] = name
        return named

    def _name(self, chain: int, address: str, native: str | None) -> str | None:
        listed = self._reference.tokens.get((chain, address))
        known_as = listed.coingecko_id if listed else None
        written = (listed.native_address if listed else None) or native
        return self._service.coin(Coin(chain, written, known_as))

    def _needs(self, wanted: DataFrame, names: DataFrame) -> Iterator[Row]:
        """Return (coin, first, last) of each time bucket with wants, by coin; a row at a time."""
        named = wanted.join(F.broadcast(names), list(TOKEN))
        rows = named.select("coin", F.unix_seconds("at").alias("second"))
        buckets = rows.groupBy("coin", F.floor(F.col("second") / self._service.bucket).alias("bucket")).agg(
            F.min("second").alias("first"), F.max("second").alias("last")
        )
        return buckets.orderBy("coin", "bucket").toLocalIterator()

    def _fetch(
        self,
        spark: SparkSession,
        needs: Iterator[Row],
        known: Callable[[list[str]], dict[str, list[tuple[Span, int]]]],
        tokens: dict[TokenId, str],
        *,
        fresh: bool = False,
    ) -> None:
        by_coin = ((coin, list(rows)) for coin, rows in groupby(needs, lambda row: row["coin"]))
        while some := dict(islice(by_coin, _COINS_AT_ONCE)):
            before = known(list(some))
            asks = [
                Ask(coin, span)
                for coin, rows in some.items()
                for span in self._open(rows, before.get(coin, []))
            ]
            if asks:
                self._take(spark, asks, tokens, fresh)

    def _open(self, rows: list[Row], asked: list[tuple[Span, int]]) -> list[Span]:
        """Return the spans to request, so that each want gets its nearest quote."""
        spans: list[Span] = []
        for row in rows:
            # A span that was asked for after a want is done with for it, though it may not have been over.
            done = [(a, b if at >= row["last"] else min(b, at)) for (a, b), at in asked]
            spans += without(self._service.needed(row["first"], row["last"]), done)
        now = self._clock()
        return [span for span in joined(spans) if span[0] < now]

    def _take(self, spark: SparkSession, asks: list[Ask], tokens: dict[TokenId, str], fresh: bool) -> None:
        """Request, store the quotes, then remember the request: killed in between, it is sent again."""
        begun = int(self._clock())
        answers: list[PriceAnswer] = []
        size = 0
        for answer in self._service.answers(asks, fresh):
            if answer.fault is not None:
                self._fault = self._fault or answer.fault
                self._unanswered.update(ask.coin for ask in answer.asks)
                continue
            coins = {ask.coin for ask in answer.asks}
            if answer.forbidden is not None:
                self._forbidden |= dict.fromkeys(coins, answer.forbidden)
            self._unanswered -= coins
            self._unlisted = self._unlisted | coins if answer.unlisted else self._unlisted - coins
            answers.append(answer)
            size += len(answer.quotes)
            if size >= _QUOTES_AT_ONCE:
                self._settle(spark, answers, begun, tokens)
                answers, size = [], 0
        self._settle(spark, answers, begun, tokens)

    def _settle(
        self, spark: SparkSession, answers: list[PriceAnswer], begun: int, tokens: dict[TokenId, str]
    ) -> None:
        valid = [quote for answer in answers for quote in answer.quotes if quote.usd is not None]
        invalid = [quote for answer in answers for quote in answer.quotes if quote.usd is None]
        self._invalid += len(invalid)
        if valid:
            rows = _quote_table(valid, tokens, self._service.name, int(self._clock() * 1_000_000))
            self._cache.keep(token_prices(spark.createDataFrame(rows)))
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
        self, spark: SparkSession, wanted: DataFrame, names: DataFrame, tokens: dict[TokenId, str]
    ) -> DataFrame:
        """Return stored quotes within reach of the wants, by wanted token."""
        kept = stored_near(self._cache.quotes(spark), wanted, self._service.name, self._rules.window_hours)
        every_name = spark.createDataFrame(_name_table(tokens | self._siblings(tokens)))
        by_coin = (
            kept.join(F.broadcast(every_name), list(TOKEN))
            .groupBy("coin", "provider", "quote_time")
            .agg(F.min(F.struct("price_usd", "confidence")).alias("quote"))
        )
        return by_coin.join(F.broadcast(names), "coin").select(
            *TOKEN, "provider", "quote_time", "quote.price_usd", "quote.confidence"
        )

    def _siblings(self, tokens: dict[TokenId, str]) -> dict[TokenId, str]:
        """Return listed tokens for which the service has the name of a wanted one."""
        wanted = set(tokens.values())
        return {
            token_id: name
            for token_id, token in self._reference.tokens.items()
            if token.coingecko_id and (name := self._name(*token_id, None)) in wanted and name is not None
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
    quotes: Iterable[Quote], tokens: dict[TokenId, str], provider: str, fetched_at: int
) -> pa.Table:
    """Return a row per quote and wanted token of that name."""
    called: dict[str, list[TokenId]] = {}
    for token_id, name in tokens.items():
        called.setdefault(name, []).append(token_id)
    rows = {(token_id, quote.micros): quote for quote in quotes for token_id in called[quote.coin]}
    return pa.table(
        [
            [chain for (chain, _), _ in rows],
            [address for (_, address), _ in rows],
            [provider] * len(rows),
            [micros for _, micros in rows],
            [quote.usd for quote in rows.values()],
            [fetched_at] * len(rows),
            [quote.confidence for quote in rows.values()],
        ],
        schema=_ROWS,
    )
