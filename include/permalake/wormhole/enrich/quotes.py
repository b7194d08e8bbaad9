"""Questions to a price service, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from typing import Any, Protocol

from permalake.intervals import Span

_PLACES = Decimal(1).scaleb(-18)
_LIMIT = Decimal(10) ** 20


@dataclass(frozen=True)
class Coin:
    """A token as a service may know it: what the lists call it, or its chain and native address."""

    chain: int
    native_address: str | None
    coingecko_id: str | None


@dataclass(frozen=True)
class Ask:
    """All quotes of a coin, by the service's own name of it, that matter in a span (unix seconds)."""

    coin: str
    span: Span


@dataclass(frozen=True)
class Quote:
    """A price in USD at a moment (unix microseconds)."""

    coin: str
    micros: int
    usd: Decimal


@dataclass(frozen=True)
class Answer:
    """What came of some asks: quotes (perhaps none), or the fault that left them unanswered."""

    asks: tuple[Ask, ...]
    quotes: list[Quote] = field(default_factory=list)
    fault: str | None = None


class PriceService(Protocol):
    """A service that tells prices of the past."""

    @property
    def name(self) -> str:
        """As ``price_source`` and ``token_prices.provider`` say it."""
        ...

    @property
    def bucket(self) -> int:
        """Seconds of the time bucket for which it is asked once."""
        ...

    def coin(self, token: Coin) -> str | None:
        """Its name of a token; None when it cannot know it."""
        ...

    def needed(self, first: int, last: int) -> Span:
        """The span to ask for, so that wants of one bucket (``first`` to ``last``) get their quote."""
        ...

    def answers(self, asks: Iterable[Ask]) -> Iterator[Answer]:
        """Answers that cover every ask once; a fault of the service is an answer too."""
        ...


def usd(value: Any) -> Decimal | None:
    """A price as the lake keeps it, decimal(38,18); None where it is none (null, negative, beyond that)."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    try:
        with localcontext(prec=60):
            price = Decimal(value)
            if not price.is_finite() or not 0 <= price < _LIMIT:
                return None
            return price.quantize(_PLACES, rounding=ROUND_HALF_EVEN)
    except InvalidOperation:
        return None
