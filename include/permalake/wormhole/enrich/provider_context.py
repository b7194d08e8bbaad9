"""What a price provider is opened with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from permalake.config import Settings
from permalake.config.services import PriceSource
from permalake.net.http import Probe, RetryPolicy, Service
from permalake.net.refusals import Refusals
from permalake.wormhole.enrich.price_service import CachedPriceService, PriceCache
from permalake.wormhole.enrich.quotes import Asking, PriceService
from permalake.wormhole.reference import Reference, load_reference


@dataclass(frozen=True)
class ProviderContext:
    """The settings of a provider, and what a service among them needs besides.

    ``key`` is the API key of the first provider.
    """

    settings: Settings
    source: PriceSource
    key: str | None
    cache: PriceCache
    asking: Asking
    retry_policy: RetryPolicy | None

    @property
    def window_hours(self) -> float:
        """Hours that a quote may lie before or after a transfer."""
        return self.settings.prices.window_hours

    @cached_property
    def reference(self) -> Reference:
        """Reference data of chains and tokens."""
        section = self.settings.wormhole
        return load_reference(section.reference if section else None)

    def service(
        self, name: str, base: str, headers: dict[str, str] | None = None, probe: str = ""
    ) -> Service:
        """Return the web service at ``base``; ``probe`` is a path that it answers cheaply."""
        rate = self.source.rate_per_second
        return Service(name, base, rate, headers, self.retry_policy, probe=Probe(probe) if probe else None)

    def refusals(self, base: str) -> Refusals:
        """Return what the service at ``base`` refused to this key, on this machine."""
        return Refusals(base, self.key or "")

    def market(self, service: PriceService) -> CachedPriceService:
        """Return the service behind the lake's cache."""
        return CachedPriceService(service, self.cache, self.reference, self.settings.prices, self.asking)
