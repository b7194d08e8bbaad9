"""Numbers as people read them."""

from __future__ import annotations

from decimal import Decimal

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


def size(value: float | Decimal | str | None) -> str:
    """Return :func:`short` in bytes; a dash for None."""
    text = short(value)
    return text if value is None else f"{text}B" if text[-1].isalpha() else f"{text} B"


def signed(value: float | Decimal | str) -> str:
    """Return all digits, in groups, behind a sign: ``+1,000``, ``−5``."""
    number = Decimal(str(value))
    return f"{'−' if number < 0 else '+' if number else ''}{abs(number):,f}"


def amount(value: float | Decimal | str | None) -> str:
    """Return all digits, in groups; a dash for None."""
    return "–" if value is None else f"{Decimal(str(value)):,f}"
