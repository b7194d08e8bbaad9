"""Price service ``defillama``: the record nearest to a moment, for many coins and moments at once.

Routes ``/batchHistorical?coins={…}&searchWidth=`` and ``/prices/historical/{timestamp}/{coins}`` as in the
DefiLlama API reference (api-docs.defillama.com). Coins are ``coingecko:id`` or ``chain:address``. A key (of
the paid plan) is a part of the address there. An answer leaves out a coin for either of two reasons;
``/prices/first/{coins}`` has the earliest record of a listed coin, and nothing of an unlisted one.

Only single records are told, each the nearest to the moment asked for. So the two ends of a bucket of five
minutes are asked: as long as records lie no closer than that, the nearest to any whole second in between is
one of these two. The ends are the last second before the bucket and its own last second: of two records
equally near to a wanted second, the earlier is strictly nearest to an end before it.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from permalake.intervals import Span
from permalake.net.http import RequestRejectedError, Service, UnavailableError
from permalake.net.refusals import Refusals
from permalake.wormhole.enrich.foreign_values import unix_second
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.provider_context import ProviderContext
from permalake.wormhole.enrich.quotes import Ask, Coin, PriceAnswer, Quote, share, usd
from permalake.wormhole.reference import ChainInfo

NAME = "defillama"
PUBLIC = "https://coins.llama.fi"
_PRO = "https://pro-api.llama.fi/{key}/coins"
_BUCKET = 300
_MOMENTS = 150
"""Coins times moments of a request: both go into its address, which must not grow long."""
_COINS = 30
_THREADS = 4
_UNLISTED_FOR = 7 * 86_400
"""Seconds after which an unlisted coin is requested again."""

Records = dict[str, list[tuple[int, Any, Any]]]
"""By coin: unix seconds, price in USD and confidence, as the service has them."""


class DefiLlama:
    """DefiLlama's batches of historical prices; one moment after the other where there are no batches."""

    name = NAME
    bucket = _BUCKET

    def __init__(
        self,
        service: Service,
        chains: Mapping[int, ChainInfo],
        window: float,
        clock: Callable[[], float] = time.time,
        refusals: Refusals | None = None,
    ) -> None:
        self._service = service
        self._chains = chains
        self._width = {
            "searchWidth": f"{math.ceil(window / 60)}m" if window % 3600 else f"{int(window // 3600)}h"
        }
        self._clock = clock
        self._refusals = refusals
        self._batches = True
        self._listed: set[str] = set()

    def coin(self, token: Coin) -> str | None:
        """Return ``coingecko:id``, or ``chain:address`` of a token that no list knows."""
        if token.coingecko_id:
            return f"coingecko:{token.coingecko_id}"
        chain = self._chains.get(token.chain)
        if chain is None or not chain.llama or not token.native_address:
            return None
        return f"{chain.llama}:{token.native_address}"

    def needed(self, first: int, last: int) -> Span:
        """Return the bucket itself; the service looks around on its own."""
        return first // _BUCKET * _BUCKET, (last // _BUCKET + 1) * _BUCKET

    def answers(self, asks: Iterable[Ask], fresh: bool = False) -> Iterator[PriceAnswer]:
        """Send as few requests as their length allows."""
        requested = list(asks)
        refused = (
            {} if fresh or not self._refusals else self._refusals.refused({ask.coin for ask in requested})
        )
        if remembered := tuple(ask for ask in requested if ask.coin in refused):
            yield PriceAnswer(remembered, unlisted=True, remembered=True)
        pieces = [piece for ask in requested if ask.coin not in refused for piece in _pieces(ask)]
        with ThreadPoolExecutor(_THREADS) as pool:
            for answers in pool.map(self._answers, list(_packed(pieces))):
                yield from answers

    def _answers(self, asks: tuple[Ask, ...]) -> list[PriceAnswer]:
        """Return the answer to the asks, apart for coins that are not listed or may not be."""
        now = math.floor(self._clock())
        moments: dict[str, set[int]] = defaultdict(set)
        for ask in asks:
            moments[ask.coin].update(min(moment, now) for moment in _ends(ask.span))
        moments_by_coin = {coin: sorted(of_coin) for coin, of_coin in moments.items()}
        try:
            quotes = self._quotes(moments_by_coin)
        except UnavailableError as error:
            return [PriceAnswer(asks, fault=str(error))]
        self._listed.update(quote.coin for quote in quotes)
        absent = {coin for coin in moments_by_coin if coin not in self._listed}
        answers = (
            [PriceAnswer(of_listed, quotes)]
            if (of_listed := _of(asks, moments_by_coin.keys() - absent))
            else []
        )
        if not absent:
            return answers
        try:
            unlisted = self._unlisted(sorted(absent))
        except UnavailableError as error:
            return [*answers, PriceAnswer(_of(asks, absent), fault=str(error))]
        self._listed |= absent - unlisted
        if self._refusals and unlisted:
            self._refusals.note(dict.fromkeys(sorted(unlisted), "unlisted"), _UNLISTED_FOR)
        if of_unquoted := _of(asks, absent - unlisted):
            answers.append(PriceAnswer(of_unquoted))
        if of_unlisted := _of(asks, unlisted):
            answers.append(PriceAnswer(of_unlisted, unlisted=True))
        return answers

    def _unlisted(self, coins: list[str]) -> set[str]:
        """Return the coins without any record; all of them where the service has no route that tells."""
        try:
            records = self._service.get(f"/prices/first/{quote(','.join(coins), safe=':,')}", _first)
        except RequestRejectedError as rejected:
            if rejected.status in (404, 405):
                return set(coins)
            raise UnavailableError(f"{self.name}: HTTP {rejected.status}") from None
        listed = {name.lower() for name in records}
        return {coin for coin in coins if coin.lower() not in listed}

    def _quotes(self, moments_by_coin: dict[str, list[int]]) -> list[Quote]:
        try:
            return self._batch(moments_by_coin) if self._batches else self._by_moment(moments_by_coin)
        except RequestRejectedError as refused:
            if self._batches and refused.status in (404, 405):
                self._batches = False
                return self._quotes(moments_by_coin)
            if refused.status in (401, 402, 403):
                self._service.give_up(
                    f"HTTP {refused.status}; set PERMALAKE_PRICES__API_KEY to a key that it takes"
                )
            if refused.status in (404, 405):
                self._service.give_up(f"HTTP {refused.status}; check prices.url")
            raise UnavailableError(f"{self.name}: HTTP {refused.status}") from None

    def _batch(self, moments_by_coin: dict[str, list[int]]) -> list[Quote]:
        params = {"coins": json.dumps(moments_by_coin, separators=(",", ":")), **self._width}
        return _chosen(moments_by_coin, self._service.get("/batchHistorical", _records, params))

    def _by_moment(self, moments_by_coin: dict[str, list[int]]) -> list[Quote]:
        coins: dict[int, list[str]] = defaultdict(list)
        for coin, moments in moments_by_coin.items():
            for moment in moments:
                coins[moment].append(coin)
        quotes: set[Quote] = set()
        for moment, of_moment in sorted(coins.items()):
            path = f"/prices/historical/{moment}/{quote(','.join(of_moment), safe=':,')}"
            quotes.update(_chosen(of_moment, self._service.get(path, _single, self._width)))
        return sorted(quotes, key=lambda quote: (quote.coin, quote.micros))


def open_provider(context: ProviderContext) -> PriceProvider:
    """Open DefiLlama as the configuration describes it."""
    place = base(context.source.url, context.key)
    service = context.service(NAME, place, probe="/prices/current/coingecko:ethereum")
    seconds = context.window_hours * 3600
    refusals = context.refusals(place)
    return context.market(DefiLlama(service, context.reference.chains, seconds, refusals=refusals))


def base(url: str | None, key: str | None) -> str:
    """Return the configured address, else that of the paid service with a key, of the public one without."""
    return url or (_PRO.format(key=quote(key, safe="")) if key else PUBLIC)


def _ends(span: Span) -> list[int]:
    """Return the moments to request: the last second before each bucket, and that of the last bucket."""
    first, beyond = span[0] // _BUCKET, -(-span[1] // _BUCKET)
    return [_BUCKET * number - 1 for number in range(first, beyond + 1)]


def _pieces(ask: Ask) -> Iterator[Ask]:
    """Split an ask into parts of at most one request."""
    step = (_MOMENTS - 1) * _BUCKET
    start, end = ask.span
    for at in range(start, end, step):
        yield Ask(ask.coin, (at, min(at + step, end)))


def _packed(asks: Iterable[Ask]) -> Iterator[tuple[Ask, ...]]:
    together: list[Ask] = []
    moments = 0
    coins: set[str] = set()
    for ask in asks:
        size = len(_ends(ask.span))
        if together and (moments + size > _MOMENTS or len(coins | {ask.coin}) > _COINS):
            yield tuple(together)
            together, moments, coins = [], 0, set()
        together.append(ask)
        moments += size
        coins.add(ask.coin)
    if together:
        yield tuple(together)


def _of(asks: Iterable[Ask], coins: Collection[str]) -> tuple[Ask, ...]:
    return tuple(ask for ask in asks if ask.coin in coins)


def _chosen(coins: Iterable[str], records: Records) -> list[Quote]:
    """Return quotes of these coins; the service may write an address in another letter case."""
    folded = {name.lower(): records_of for name, records_of in records.items()}
    quotes = {
        Quote(coin, seconds * 1_000_000, usd(price), share(confidence))
        for coin in coins
        for seconds, price, confidence in records.get(coin, folded.get(coin.lower(), []))
    }
    return sorted(quotes, key=lambda quote: (quote.coin, quote.micros))


def _records(document: Any) -> Records:
    """Convert ``{"coins": {coin: {"prices": [{"timestamp": s, "price": usd, "confidence": c}, …]}}}``."""
    return {
        coin: [_record(record) for record in of_coin["prices"]]
        for coin, of_coin in dict(document["coins"]).items()
    }


def _single(document: Any) -> Records:
    """Convert ``{"coins": {coin: {"timestamp": s, "price": usd, "confidence": c}}}``."""
    return {coin: [_record(record)] for coin, record in dict(document["coins"]).items()}


def _record(record: dict[str, Any]) -> tuple[int, Any, Any]:
    return unix_second(record["timestamp"]), record["price"], record.get("confidence")


def _first(document: Any) -> list[str]:
    """Return the coins of ``{"coins": {coin: {"timestamp": s, "price": usd, …}}}``."""
    return [coin for coin, of_coin in dict(document["coins"]).items() if int(of_coin["timestamp"]) >= 0]
