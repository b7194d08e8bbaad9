"""Price service ``coingecko``: ranges of quotes by coin id, or by asset platform and contract address.

Routes, headers and error codes as in the CoinGecko API v3 reference (docs.coingecko.com): keys of the Demo
plan go to api.coingecko.com, keys of paid plans to pro-api.coingecko.com, each under a header name of its
own. A range of 2 to 90 days is answered hour by hour, a longer one day by day only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlsplit

from permalake.intervals import Span
from permalake.net.http import RequestRejectedError, Service, UnavailableError
from permalake.wormhole.enrich.quotes import Answer, Ask, Coin, Quote, usd
from permalake.wormhole.reference import ChainInfo

NAME = "coingecko"
PUBLIC, PRO = "https://api.coingecko.com/api/v3", "https://pro-api.coingecko.com/api/v3"
_DEMO_HEADER, _PRO_HEADER = "x-cg-demo-api-key", "x-cg-pro-api-key"
_HOSTS = {"api.coingecko.com", "pro-api.coingecko.com"}
_DAY = 86_400
_LONGEST = 89 * _DAY
_NOT_IN_THE_PLAN = {10012}
"""error_code of a range that lies further back than the plan reaches."""
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
    ) -> None:
        self._service = service
        self._chains = chains
        self._window = math.ceil(window)
        self._clock = clock

    def coin(self, token: Coin) -> str | None:
        """``id``, or ``platform/address`` of a token that no list knows."""
        if token.coingecko_id:
            return token.coingecko_id
        chain = self._chains.get(token.chain)
        if chain is None or not chain.coingecko or not token.native_address:
            return None
        return f"{chain.coingecko}/{token.native_address}"

    def needed(self, first: int, last: int) -> Span:
        """Whole days: what is asked today serves the neighbouring days too."""
        return (first - self._window) // _DAY * _DAY, -((-last - self._window - 1) // _DAY) * _DAY

    def answers(self, asks: Iterable[Ask]) -> Iterator[Answer]:
        """One request per ask, or more where it is longer than CoinGecko answers by the hour."""
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(self._answer, list(asks))

    def _answer(self, ask: Ask) -> Answer:
        start, end = ask.span
        end = min(end, math.ceil(self._clock()))
        quotes: list[Quote] = []
        try:
            for at in range(start, end, _LONGEST):
                quotes += self._range(ask.coin, at, min(at + _LONGEST, end))
        except UnavailableError as error:
            return Answer((ask,), fault=str(error))
        return Answer((ask,), quotes)

    def _range(self, coin: str, start: int, end: int) -> list[Quote]:
        platform, slash, address = coin.partition("/")
        place = f"{quote(platform, safe='')}/contract/{quote(address, safe='')}" if slash else quote(coin)
        params = {"vs_currency": "usd", "from": str(start), "to": str(end), "precision": "full"}
        try:
            found = self._service.get(f"/coins/{place}/market_chart/range", _prices, params)
        except RequestRejectedError as refused:
            return self._none(refused)
        inside = (one for one in found if start * 1_000_000 <= one[0] <= end * 1_000_000)
        return [Quote(coin, micros, price) for micros, value in inside if (price := usd(value)) is not None]

    def _none(self, refused: RequestRejectedError) -> list[Quote]:
        """No quotes for a coin that is not known or a past that the plan leaves out; any other refusal is
        a fault."""
        if refused.status == 404 and refused.body is not None:
            return []
        if _error_code(refused.body) in _NOT_IN_THE_PLAN:
            return []
        if refused.status in (401, 403):
            self._service.give_up(
                f"HTTP {refused.status}; set PERMALAKE_PRICES__API_KEY to a key of this address"
            )
        if refused.status == 404:
            self._service.give_up("HTTP 404 without a reason; check prices.url")
        raise UnavailableError(f"{self.name}: HTTP {refused.status}")


def base(url: str | None, key: str | None) -> str:
    """Where to ask: the configured address (its ``/api/v3`` may be left out for CoinGecko's own hosts), else
    the paid service with a key, the public one without."""
    if not url:
        return PRO if key else PUBLIC
    parts = urlsplit(url)
    return f"{url.rstrip('/')}/api/v3" if parts.hostname in _HOSTS and not parts.path.strip("/") else url


def headers(url: str, key: str | None) -> dict[str, str]:
    """The key under the name that the service at this address expects."""
    if not key:
        return {}
    demo = urlsplit(url).hostname == urlsplit(PUBLIC).hostname
    return {_DEMO_HEADER if demo else _PRO_HEADER: key}


def _prices(document: Any) -> list[tuple[int, Any]]:
    """``{"prices": [[unix ms, price], …]}`` → (unix µs, price)."""
    prices = document["prices"]
    if not isinstance(prices, list):
        raise ValueError("prices is no list")
    return [(int(moment) * 1000, value) for moment, value in prices]


def _error_code(body: Any) -> Any:
    """Of ``{"error": {"status": {"error_code": …}}}`` or ``{"status": {…}}`` or ``{"error_code": …}``."""
    for name in ("error", "status"):
        body = body.get(name, body) if isinstance(body, dict) else body
    return body.get("error_code") if isinstance(body, dict) else None
