"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from permalake.contracts.figures import Unit

_STEPS = ((12, "T"), (9, "B"), (6, "M"), (3, "k"))


def short(value: float | Decimal | str | None) -> str:
    """Return three significant digits with k, M, B or T: ``1.23 M``; a dash for None."""
    if value is None:
        return "–"
    number = Decimal(str(value))
    for exponent, letter in _STEPS:
        if abs(number) >= Decimal(10) ** exponent:
            if abs(number) >= Decimal(10) ** 15:
                return f"{number:.2e}"
            return f"{_three(number / Decimal(10) ** exponent)} {letter}"
    return _three(number)


def _three(number: Decimal) -> str:
    if number == number.to_integral() or abs(number) >= 100:
        return f"{number:.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"


def dollars(value: float | Decimal | str | None) -> str:
    """Return :func:`short` in US dollars; a dash for None."""
    if value is None:
        return "–"
    text = short(value)
    return f"−${text.removeprefix('-')}" if text.startswith("-") else f"${text}"


@dataclass(frozen=True)
class CoinUnit:
    """The form of a network's amounts: its ticker, and how many decimals of base tokens a coin has."""

    ticker: str
    decimals: int

    def of(self, base: float | Decimal | str) -> Decimal:
        """Return base tokens in coins."""
        return Decimal(str(base)).scaleb(-self.decimals)


def coins(value: float | Decimal | str | None, coin: CoinUnit, *, sign: bool = False) -> str:
    """Return base tokens in coins, all digits in groups: ``1,234.500000 SMR``; a dash for None."""
    if value is None:
        return "–"
    number = coin.of(value)
    mark = ("−" if number < 0 else "+" if number else "") if sign else "−" if number < 0 else ""
    return f"{mark}{abs(number):,.{coin.decimals}f} {coin.ticker}"


def worth(valued: int, of: int, usd: float | Decimal | str | None) -> str:
    """Return a sum with how much it covers: ``142 of 157 transfers valued: $400 M``."""
    noun = "transfer" if of == 1 else "transfers"
    if not of:
        return "no transfers"
    if not valued:
        return f"{of:,} {noun}, none has a price"
    if valued == of:
        return f"{of:,} {noun} worth {dollars(usd)}"
    return f"{valued:,} of {of:,} {noun} valued: {dollars(usd)}"


def size(value: float | Decimal | str | None) -> str:
    """Return :func:`short` in bytes; a dash for None."""
    text = short(value)
    return text if value is None else f"{text}B" if text[-1].isalpha() else f"{text} B"


def amount(value: float | Decimal | str | None) -> str:
    """Return all digits, in groups; a dash for None."""
    return "–" if value is None else f"{Decimal(str(value)):,f}"


_FORMATS: Mapping[Unit, Callable[[Any], str]] = {"usd": dollars, "bytes": size}


def formatted(value: Any, unit: Unit, coin: CoinUnit | None = None) -> str:
    """Return a figure as the pages show it; ``coin``: of the network's tokens."""
    if unit == "tokens" and coin and value is not None:
        return f"{short(coin.of(value))} {coin.ticker}"
    return _FORMATS.get(unit, short)(value)


def tick(value: Any, unit: Unit, coin: CoinUnit | None = None) -> str:
    """Return a figure as the axis of a chart shows it: without the coin, which the chart's title names."""
    return short(coin.of(value)) if unit == "tokens" and coin else formatted(value, unit)
