"""Price service ``coingecko``: ranges of quotes by coin id, or by asset platform and contract address.

Routes, headers and error codes as in the CoinGecko API v3 reference (docs.coingecko.com): keys of the Demo
plan go to api.coingecko.com, keys of paid plans to pro-api.coingecko.com, each under a header name of its
own. A range of 2 to 90 days is answered hour by hour, a longer one day by day only.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from permalake.intervals import Span
from permalake.net.http import RequestRejectedError, Service, UnavailableError
from permalake.net.refusals import Refusals
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.provider_context import ProviderContext
from permalake.wormhole.enrich.quotes import Ask, Coin, PriceAnswer, Quote, usd
from permalake.wormhole.reference import ChainInfo

NAME = "coingecko"
HISTORY = "history"
"""Under this name the last day that lies outside the plan is remembered, by its start in unix seconds."""
_UNLISTED_FOR, _FORBIDDEN_FOR = 7 * 86_400, 86_400
"""Seconds after which an unlisted coin, or a past outside the plan, is requested again."""
PUBLIC, PRO = "https://api.coingecko.com/api/v3", "https://pro-api.coingecko.com/api/v3"
_DEMO_HEADER, _PRO_HEADER = "x-cg-demo-api-key", "x-cg-pro-api-key"
_HOSTS = {"api.coingecko.com", "pro-api.coingecko.com"}
_DAY = 86_400
DAYS_AT_ONCE = 89
"""Days that one request covers hour by hour."""
_NOT_IN_THE_PLAN = 10012
"""error_code of a range that lies further back than the plan reaches."""
_FORBIDDEN = "coingecko: the plan has no quotes of that time (error 10012)"
_THREADS = 4


class CoinGecko:
    """CoinGecko's coin and contract routes, one request per coin and run of days."""

    name = NAME
    bucket = _DAY

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
        self._window = math.ceil(window)
        self._clock = clock
        self._refusals = refusals
        self._plan_begins = 0

    def coin(self, token: Coin) -> str | None:
        """Return ``id``, or ``platform/address`` of a token that no list knows."""
        if token.coingecko_id:
            return token.coingecko_id
        chain = self._chains.get(token.chain)
        if chain is None or not chain.coingecko or not token.native_address:
            return None
        return f"{chain.coingecko}/{token.native_address}"

    def needed(self, first: int, last: int) -> Span:
        """Return whole days: a request of today serves the neighbouring days too."""
        return (first - self._window) // _DAY * _DAY, -((-last - self._window - 1) // _DAY) * _DAY

    def answers(self, asks: Iterable[Ask], fresh: bool = False) -> Iterator[PriceAnswer]:
        """Send one request per ask, or more where it is longer than CoinGecko answers by the hour."""
        requested = list(asks)
        refused = (
            {}
            if fresh or not self._refusals
            else self._refusals.refused({a.coin for a in requested} | {HISTORY})
        )
        self._plan_begins = int(refused[HISTORY]) + _DAY if HISTORY in refused else 0
        open_asks = []
        for ask in requested:
            if ask.coin in refused:
                yield PriceAnswer((ask,), unlisted=True, remembered=True)
            elif ask.span[1] <= self._plan_begins:
                yield PriceAnswer((ask,), forbidden=_FORBIDDEN, remembered=True)
            else:
                open_asks.append(ask)
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(self._answer, open_asks)

    def _answer(self, ask: Ask) -> PriceAnswer:
        start, end = max(ask.span[0], self._plan_begins), min(ask.span[1], math.ceil(self._clock()))
        forbidden = _FORBIDDEN if ask.span[0] < start else None
        quotes: list[Quote] = []
        try:
            while start < end:
                stop = min(start + DAYS_AT_ONCE * _DAY, end)
                try:
                    quotes += self._range(ask.coin, start, stop)
                    start = stop
                except _ForbiddenError:
                    forbidden = _FORBIDDEN
                    start = self._first_day(ask.coin, start, end)
                    self._plan_begins = max(self._plan_begins, start)
                    self._remember({HISTORY: str(self._plan_begins - _DAY)}, _FORBIDDEN_FOR)
        except _UnlistedError:
            self._remember({ask.coin: "unlisted"}, _UNLISTED_FOR)
            return PriceAnswer((ask,), unlisted=True)
        except UnavailableError as error:
            return PriceAnswer((ask,), fault=str(error))
        return PriceAnswer((ask,), quotes, forbidden=forbidden)

    def _first_day(self, coin: str, start: int, end: int) -> int:
        """Return the first day of a refused range that the plan has; a day after its last one, if none."""

        def has(day: int) -> bool:
            try:
                self._range(coin, day, min(day + _DAY, end))
            except _ForbiddenError:
                return False
            return True

        days = range(start + _DAY, end, _DAY)
        number = bisect_left(days, x=True, key=has)
        return start + (number + 1) * _DAY

    def _remember(self, refused: dict[str, str], seconds: float) -> None:
        if self._refusals:
            self._refusals.note(refused, seconds)

    def _range(self, coin: str, start: int, end: int) -> list[Quote]:
        platform, slash, address = coin.partition("/")
        place = f"{quote(platform, safe='')}/contract/{quote(address, safe='')}" if slash else quote(coin)
        params = {"vs_currency": "usd", "from": str(start), "to": str(end), "precision": "full"}
        try:
            answer = self._service.get(f"/coins/{place}/market_chart/range", _prices, params)
        except RequestRejectedError as rejected:
            self._rejected(rejected)
        inside = (point for point in answer if start * 1_000_000 <= point[0] <= end * 1_000_000)
        return [Quote(coin, micros, usd(value)) for micros, value in inside]

    def _rejected(self, rejected: RequestRejectedError) -> NoReturn:
        """Tell an unlisted coin and a forbidden past from a fault."""
        if _error_code(rejected.body) == _NOT_IN_THE_PLAN:
            raise _ForbiddenError
        if rejected.status == 404 and rejected.body is not None:
            raise _UnlistedError
        if rejected.status in (401, 403):
            self._service.give_up(
                f"HTTP {rejected.status}; set PERMALAKE_PRICES__API_KEY to a key of this address"
            )
        if rejected.status == 404:
            self._service.give_up("HTTP 404 without a reason; check prices.url")
        raise UnavailableError(f"{self.name}: HTTP {rejected.status}")


class _UnlistedError(Exception):
    """Raised for a coin that CoinGecko does not know."""


class _ForbiddenError(Exception):
    """Raised for a past that lies outside the key's plan."""


def open_provider(context: ProviderContext) -> PriceProvider:
    """Open CoinGecko as the configuration describes it."""
    place = base(context.source.url, context.key)
    service = context.service(NAME, place, headers(place, context.key), probe="/ping")
    seconds = context.window_hours * 3600
    refusals = context.refusals(place)
    return context.market(CoinGecko(service, context.reference.chains, seconds, refusals=refusals))


def base(url: str | None, key: str | None) -> str:
    """Return the base address: the configured one, else the paid service with a key, the public one without.

    ``/api/v3`` may be left out for CoinGecko's own hosts.
    """
    if not url:
        return PRO if key else PUBLIC
    parts = urlsplit(url)
    return f"{url.rstrip('/')}/api/v3" if parts.hostname in _HOSTS and not parts.path.strip("/") else url


def headers(url: str, key: str | None) -> dict[str, str]:
    """Return the key as the header that the service at this address expects."""
    if not key:
        return {}
    demo = urlsplit(url).hostname == urlsplit(PUBLIC).hostname
    return {_DEMO_HEADER if demo else _PRO_HEADER: key}


def _prices(document: Any) -> list[tuple[int, Any]]:
    """Convert ``{"prices": [[unix ms, price], …]}`` to (unix µs, price)."""
    prices = document["prices"]
    if not isinstance(prices, list):
        raise ValueError("prices is no list")
    return [(int(moment) * 1000, value) for moment, value in prices]


def _error_code(body: Any) -> Any:
    """Return ``error_code`` of an error document; it lies in ``error.status``, ``status`` or at the top."""
    for name in ("error", "status"):
        body = body.get(name, body) if isinstance(body, dict) else body
    return body.get("error_code") if isinstance(body, dict) else None
