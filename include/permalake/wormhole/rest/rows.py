"""Questions to the published tables of Wormhole, and the values of their answers."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any, Protocol

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan


class Rows(Protocol):
    """Runs one SELECT over one published state, as :meth:`permalake.web.lake.RequestLake.rows` does."""

    def __call__(self, sql: str, parameters: Mapping[str, Any] | None = None, **scans: Scan) -> list[Row]:
        """Return rows by column name; ``scans``: every table that is read, and which days of it."""
        ...


class Parameters(dict[str, Any]):
    """Parameters of a statement, named as they are added."""

    def add(self, value: object) -> str:
        """Bind one more value; return its ``$name``."""
        name = f"p{len(self)}"
        self[name] = value
        return f"${name}"

    def add_all(self, values: Iterable[object]) -> str:
        """Bind the values of an IN list, at least one; return their names."""
        return ", ".join(self.add(value) for value in values)


def utc_text(moment: datetime) -> str:
    """Format a time as RFC 3339 in UTC, to the second, as Wormholescan does."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def base64_text(value: bytes) -> str:
    """Encode bytes as standard base64 with padding."""
    return base64.b64encode(value).decode("ascii")


_EXACT = Context(prec=100)
"""Sums of decimals with 38 digits: the default context would round them to 28."""


def exact_sum(values: Iterable[Decimal]) -> Decimal:
    """Add decimals without rounding."""
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, value)
    return total


def plain_decimal(value: Decimal | None) -> str:
    """Format a decimal without exponent and trailing zeros; ``0`` for None."""
    if value is None:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
