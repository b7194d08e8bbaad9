"""What the days of Wormhole are built from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from permalake.config import PriceSource, Settings, WormholeSettings
from permalake.contracts.steps import Dataset, source_dataset
from permalake.errors import ConfigError
from permalake.paths import REFERENCE
from permalake.spark.sizes import MODERATE_BYTES


@dataclass(frozen=True)
class WormholeInputs:
    """The sources of VAAs, prices and chain details, as configured."""

    settings: Settings
    section: WormholeSettings

    @property
    def live(self) -> bool:
        """Whether an explorer or a price service answers."""
        asked = any(source.provider != "file" for source in self._prices)
        return self.section.source != "files" or asked

    @property
    def roots(self) -> tuple[Path | None, ...]:
        """VAA files, reference data, observations, operations and price files."""
        return (
            self.section.path,
            self.section.reference,
            self.section.observations,
            self.section.operations,
            *(source.path for source in self._prices),
            REFERENCE,
        )

    @property
    def _prices(self) -> tuple[PriceSource, ...]:
        prices = self.settings.prices
        return (prices, *prices.fallback, *([prices.cross_check] if prices.cross_check else []))

    @property
    def archive(self) -> Path | None:
        """The VAA files; None for an explorer."""
        return self.section.path

    @property
    def cheap_below(self) -> int:
        """Signatures are recovered and payloads decoded in Python."""
        return MODERATE_BYTES

    @property
    def configuration(self) -> str:
        """The sections ``[wormhole]``, ``[prices]`` and ``[chains]`` as JSON lines."""
        chains = (f"{chain} {one.model_dump_json()}" for chain, one in sorted(self.settings.chains.items()))
        return "\n".join([self.section.model_dump_json(), self.settings.prices.model_dump_json(), *chains])

    @property
    def dataset(self) -> Dataset | None:
        """The source of VAAs as an OpenLineage dataset."""
        return source_dataset(self.section.path, self.section.url, "wormhole")

    def continued(self, notes: Mapping[date, Sequence[str]]) -> dict[date, str]:  # noqa: ARG002
        """Return nothing: late VAAs make their own days stale when they are read."""
        return {}


def wormhole_inputs(settings: Settings, network: str) -> WormholeInputs:  # noqa: ARG001
    """Return the inputs; :class:`ConfigError` when ``[wormhole]`` is not configured."""
    if settings.wormhole is None:
        raise ConfigError("[wormhole] is not configured; say in permalake.toml where the VAAs are")
    return WormholeInputs(settings, settings.wormhole)
