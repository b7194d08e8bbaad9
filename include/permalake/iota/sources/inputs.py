"""What the days of an IOTA network are built from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from permalake.config import NetworkSettings, NodeParameters, Settings
from permalake.contracts.steps import Dataset, source_dataset
from permalake.spark.sizes import PACKED_BYTES


@dataclass(frozen=True)
class IotaInputs:
    """The source of one network, as configured; ``is_served``: its rows are copied to Cassandra."""

    name: str
    network: NetworkSettings
    is_served: bool

    @property
    def live(self) -> bool:
        """Whether a node answers."""
        return self.network.source == "node"

    @property
    def roots(self) -> tuple[Path | None, ...]:
        """The source's files and the ledger before the first day."""
        return self.network.path, self.network.ledger.path if self.network.ledger else None

    @property
    def archive(self) -> Path | None:
        """The source's files; None for a node."""
        return self.network.path

    @property
    def cheap_below(self) -> int:
        """Tasks pack the records of an archive; what Chronicle logs, and rows for Cassandra, Java handles."""
        moves_packs = self.network.source == "archive_rest" and not self.is_served
        return PACKED_BYTES if moves_packs else 0

    @property
    def configuration(self) -> str:
        """The network's section as JSON, without the keys that only the REST API uses."""
        return self.network.model_dump_json(exclude=set(NodeParameters.model_fields))

    @property
    def dataset(self) -> Dataset | None:
        """The source as an OpenLineage dataset."""
        return source_dataset(self.network.path, self.network.url, self.name)

    def continued(self, notes: Mapping[date, Sequence[str]]) -> dict[date, str]:
        """Return the days inside which the source's files ended and go on now, with the reason."""
        from permalake.iota.sources.source_ends import continued_files

        return continued_files(self.network, notes)


def iota_inputs(settings: Settings, network: str) -> IotaInputs:
    """Return the inputs of a configured network; :class:`ConfigError` when it is not configured."""
    return IotaInputs(network, settings.network(network), settings.cassandra.configured)
