"""The inputs of an IOTA network's days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from permalake.config import Settings
from permalake.config.networks import OF_MIRRORS, NetworkSettings, NodeParameters
from permalake.contracts.steps import Dataset, Publishers, publishers_of, source_dataset
from permalake.errors import ConfigError
from permalake.spark.sizes import PACKED_BYTES


@dataclass(frozen=True)
class IotaInputs:
    """The source of one network, as configured; ``is_served``: its rows are copied to Cassandra."""

    name: str
    network: NetworkSettings
    is_served: bool

    @property
    def live(self) -> bool:
        """Whether a node or a publisher answers."""
        return self.network.source in {"node", "permalake"}

    @property
    def roots(self) -> tuple[Path | None, ...]:
        """The source's files and the ledger before the first day."""
        return self.archive, self.network.ledger.path if self.network.ledger else None

    @property
    def archive(self) -> Path | None:
        """The source's files; None for a node or a publisher."""
        return None if self.publishers else self.network.path

    @property
    def cheap_below(self) -> int:
        """Tasks pack the records of an archive; what Chronicle logs, and rows for Cassandra, Java handles."""
        moves_packs = self.network.source == "archive_rest" and not self.is_served
        return PACKED_BYTES if moves_packs else 0

    @property
    def configuration(self) -> str:
        """The network's section as JSON, without the keys that only the REST API or a mirror uses."""
        return self.network.model_dump_json(exclude={*NodeParameters.model_fields, *OF_MIRRORS})

    @property
    def dataset(self) -> Dataset | None:
        """The source as an OpenLineage dataset."""
        return source_dataset(self.archive, self.network.url, self.name)

    def continued(self, notes: Mapping[date, Sequence[str]]) -> dict[date, str]:
        """Return the days inside which the source's files ended and go on now, with the reason.

        Of a publisher: the days that it has signed anew.
        """
        if self.publishers:
            from permalake.transparency.landed import news

            return news(self.publishers, self.name, notes)
        from permalake.iota.sources.source_ends import continued_files

        return continued_files(self.network, notes)

    @property
    def publishers(self) -> Publishers | None:
        """Whose signed days are copied."""
        return publishers_of(self.network)


def iota_inputs(settings: Settings, network: str) -> IotaInputs:
    """Return the inputs of a configured network; :class:`ConfigError` when it is not configured."""
    return IotaInputs(network, settings.network(network), settings.cassandra.configured)


def check_live(settings: Settings, network: str) -> None:
    """Raise :class:`ConfigError` unless the source of a network grows: only a node does."""
    source = settings.network(network).source
    if source != "node":
        raise ConfigError(
            f"networks.{network}.source: {source} does not grow; set 'node' and url to follow the network "
            "live"
        )
