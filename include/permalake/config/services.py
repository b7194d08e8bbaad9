"""Sections of the services that are asked: price providers and chains."""

from __future__ import annotations

import hashlib
import math
import pkgutil
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import (
    Field,
    PlainSerializer,
    SecretStr,
    field_validator,
    model_validator,
)

from permalake.config.section import Section

PRICE_WINDOW_HOURS = 12.0
"""Default of ``prices.window_hours``."""
_SHORTEST_WINDOW = 1 / 60
"""A minute: services are asked by the minute."""
_LONGEST_WINDOW = 24.0 * 31
"""A month: a quote further away is no price of that time, and the audit reads all quotes as far as this."""
_PROVIDERS = Path(__file__).parent.parent / "wormhole" / "enrich" / "providers"


def window_days(window_hours: float) -> int:
    """Return how many days a quote may lie before or after the day of what it prices."""
    return math.ceil(window_hours / 24)


def _digest(value: SecretStr) -> str:
    return hashlib.blake2b(value.get_secret_value().encode(), digest_size=16).hexdigest()


@cache
def price_providers() -> tuple[str, ...]:
    """Return the names that ``prices.provider`` may have: one module each, which is not imported for it."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules([str(_PROVIDERS)])))


class PriceSource(Section):
    """A provider of prices: its place and its rate limit."""

    provider: str = "file"
    url: str | None = Field(default=None, repr=False)
    path: Path | None = None
    rate_per_second: float = Field(default=1.0, gt=0)

    @field_validator("provider")
    @classmethod
    def _exists(cls, value: str) -> str:
        if value not in price_providers():
            raise ValueError(f"{value} is no price provider; choose {', '.join(price_providers())}")
        return value


class PricesSettings(PriceSource):
    """``[prices]``: the providers of token prices.

    ``fallback`` lists further providers, asked in order for quotes that the first does not have; ``api_key``
    belongs to the first. ``cross_check`` is one more, whose quotes are stored beside those in use and
    compared with them by the audit. A quote counts within ``window_hours`` of the transfer. ``max_missing``
    is the share of a day's transfers of listed tokens that may lack a price; a day with more fails its audit.
    The default passes every day with a warning, so that a provider outage blocks nothing.

    A quote in which its provider has less confidence than ``min_confidence`` gives no value. One that differs
    by more than ``max_factor`` from the token's quotes before and after it, or from the cross-check, is an
    outlier: the audit warns of it, and with ``exclude_outliers`` it gives no value either.
    """

    api_key: SecretStr | None = None
    window_hours: float = Field(default=PRICE_WINDOW_HOURS, ge=_SHORTEST_WINDOW, le=_LONGEST_WINDOW)
    """Hours that a quote may lie before or after a transfer."""
    min_confidence: float = Field(default=0.5, ge=0, le=1)
    max_factor: float = Field(default=10.0, gt=1, allow_inf_nan=False)
    exclude_outliers: bool = False
    max_missing: float = Field(default=1.0, ge=0, le=1)
    fallback: tuple[PriceSource, ...] = ()
    cross_check: PriceSource | None = None

    @model_validator(mode="after")
    def _checks_another(self) -> PricesSettings:
        used = {self.provider, *(source.provider for source in self.fallback)}
        if self.cross_check and self.cross_check.provider in used:
            raise ValueError(
                f"cross_check: {self.cross_check.provider} is already asked for prices; name another provider"
            )
        return self


class ChainSettings(Section):
    """``[chains.ID]``: RPC of a chain, by Wormhole chain id."""

    rpc_url: Annotated[SecretStr, PlainSerializer(_digest)]
    """Often holds an API key; a dump has its digest, so that fingerprints follow a change."""
    rate_per_second: float = Field(default=5.0, gt=0)
    concurrency: int = Field(default=4, ge=1, le=64)

    @field_validator("rpc_url")
    @classmethod
    def _is_http(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith(("http://", "https://")):
            raise ValueError("give an http:// or https:// address")
        return value
