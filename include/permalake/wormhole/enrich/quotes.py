"""Questions to a price service and its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from typing import Any, Protocol

from permalake.intervals import Span
from permalake.wormhole.contracts.value_reasons import PRICE_LIMIT

_PLACES = Decimal(1).scaleb(-18)


@dataclass(frozen=True)
class Coin:
    """A token as a service may know it: its id in the token list, or its chain and native address."""

    chain: int
    native_address: str | None
    coingecko_id: str | None


@dataclass(frozen=True)
class Ask:
    """A request for all quotes of a coin (by the service's own name) that matter in a span (unix seconds)."""

    coin: str
    span: Span


@dataclass(frozen=True)
class Quote:
    """A price in USD at a moment (unix microseconds); None where what the service has is no price.

    ``confidence``: what the service itself says of it, 0 to 1.
    """

    coin: str
    micros: int
    usd: Decimal | None
    confidence: float | None = None


@dataclass(frozen=True)
class PriceAnswer:
    """The outcome of some asks.

    Without quotes and the following fields the coin is listed, but has no quote at that time. ``unlisted``:
    the service does not know the coin. ``forbidden``: the key's plan does not reach that far back.
    ``fault``: the asks are unanswered. The last two are one line each.
    """

    asks: tuple[Ask, ...]
    quotes: list[Quote] = field(default_factory=list)
    fault: str | None = None
    unlisted: bool = False
    forbidden: str | None = None
    remembered: bool = False
    """Whether an earlier refusal answered instead of a request."""

    @property
    def is_settled(self) -> bool:
        """Whether the same asks would bring the same quotes for good."""
        return self.fault is None and self.forbidden is None and not self.unlisted


@dataclass(frozen=True)
class Asking:
    """How providers are asked.

    ``again``: once more for what had no quote. ``anew``: a file's quotes count where the stored ones differ.
    ``stored``: no service is asked.
    """

    again: bool = False
    anew: bool = False
    stored: bool = False


ORDINARY = Asking()


class PriceService(Protocol):
    """A service that tells prices of the past."""

    @property
    def name(self) -> str:
        """Name in ``price_source`` and ``token_prices.provider``."""
        ...

    @property
    def bucket(self) -> int:
        """Seconds of the time bucket that one request covers."""
        ...

    def coin(self, token: Coin) -> str | None:
        """Return the service's name of a token; None when it cannot know the token."""
        ...

    def needed(self, first: int, last: int) -> Span:
        """Return the span to request, so that wants of one bucket (``first`` to ``last``) get their quote."""
        ...

    def answers(self, asks: Iterable[Ask], fresh: bool = False) -> Iterator[PriceAnswer]:
        """Yield answers that cover every ask once; a fault of the service is an answer too.

        ``fresh``: ask again for what the service refused lately.
        """
        ...


def usd(value: Any) -> Decimal | None:
    """Return a price as decimal(38,18), as the lake stores it.

    None for what is no price: null, zero (also after rounding), below zero, not finite, from
    :data:`~permalake.wormhole.contracts.value_reasons.PRICE_LIMIT` on.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    try:
        with localcontext(prec=60):
            price = Decimal(value)
            if not price.is_finite() or not 0 < price < PRICE_LIMIT:
                return None
            return price.quantize(_PLACES, rounding=ROUND_HALF_EVEN) or None
    except InvalidOperation:
        return None


def share(value: Any) -> float | None:
    """Return a confidence from 0 to 1; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= 1:
        return None
    return float(value)


def invalid_quotes(provider: str, count: int) -> str:
    """Return the note on quotes that are no prices."""
    return f"prices: {provider}: {count} quote{'s' * (count > 1)} left out, no price above 0 and below 10^12"
