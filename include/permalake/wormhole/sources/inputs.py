"""The inputs of Wormhole's days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from permalake.config import Settings
from permalake.config.networks import OF_MIRRORS, WormholeSettings
from permalake.config.services import PriceSource
from permalake.contracts.steps import Dataset, Publishers, publishers_of, source_dataset
from permalake.errors import ConfigError
from permalake.paths import REFERENCE
from permalake.spark.sizes import MODERATE_BYTES
from permalake.wormhole.contracts.tables import NAMESPACE


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
            self.archive,
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
        """The VAA files; None for an explorer or a publisher."""
        return None if self.publishers else self.section.path

    @property
    def cheap_below(self) -> int:
        """Signatures are recovered and payloads decoded in Python."""
        return MODERATE_BYTES

    @property
    def configuration(self) -> str:
        """The sections ``[wormhole]``, ``[prices]`` and ``[chains]`` as JSON lines."""
        chains = (
            f"{chain} {section.model_dump_json()}" for chain, section in sorted(self.settings.chains.items())
        )
        section = self.section.model_dump_json(exclude=set(OF_MIRRORS))
        return "\n".join([section, self.settings.prices.model_dump_json(), *chains])

    @property
    def dataset(self) -> Dataset | None:
        """The source of VAAs as an OpenLineage dataset."""
        return source_dataset(self.archive, self.section.url, "wormhole")

    def continued(self, notes: Mapping[date, Sequence[str]]) -> dict[date, str]:
        """Return the days that a publisher has signed anew; late VAAs make their days stale when read."""
        if not self.publishers:
            return {}
        from permalake.transparency.landed import news

        return news(self.publishers, NAMESPACE, notes)

    @property
    def publishers(self) -> Publishers | None:
        """Whose signed days are copied."""
        return publishers_of(self.section)


def wormhole_inputs(settings: Settings, network: str) -> WormholeInputs:  # noqa: ARG001
    """Return the inputs; :class:`ConfigError` when ``[wormhole]`` is not configured."""
    if settings.wormhole is None:
        raise ConfigError("[wormhole] is not configured; say in permalake.toml where the VAAs are")
    return WormholeInputs(settings, settings.wormhole)


def check_live(settings: Settings, network: str) -> None:
    """Raise :class:`ConfigError` unless VAAs come from what grows: a spy, files or Wormholescan."""
    section = wormhole_inputs(settings, network).section
    if settings.live.spy is not None:
        return
    if section.source == "permalake":
        raise ConfigError(
            "wormhole.source: permalake has whole days alone; set 'wormholescan', or 'files' and path, to "
            "follow Wormhole live"
        )
    if section.source == "files" and section.path is None:
        raise ConfigError("wormhole.path: missing; point it at the folder with the VAA files")
