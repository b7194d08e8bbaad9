"""The stores as a server reads them: a reader of each, and the days that each holds as they are published."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from permalake.config import Settings
from permalake.errors import StoreUnavailableError
from permalake.lake.identity import open_database
from permalake.stores import served
from permalake.stores.bigtable_reader import BigtableReader
from permalake.stores.cassandra_reader import CassandraReader
from permalake.stores.served import HeldDay

_PING_SECONDS = 2.0


@dataclass(frozen=True)
class WholeDays:
    """Days that a store holds whole. ``version`` changes when they do."""

    version: int
    days: Mapping[date, HeldDay]

    def as_of(self, publication: int) -> dict[date, int]:
        """Return the days that the store holds as a published state has them, each with its write time.

        A day that was published again later is not among them, whatever the store holds of it.
        """
        return {day: held.micros for day, held in self.days.items() if held.publication_id <= publication}


class StoreReaders:
    """Readers of the configured stores, when ``serve.backend`` is ``stores``; else there are none.

    ``networks`` names the store that each network is published into.
    """

    def __init__(self, settings: Settings, networks: Mapping[str, str]) -> None:
        asked = settings.serve.backend == "stores"
        self._networks = dict(networks) if asked else {}
        self._database = open_database(settings, settings.serve.catalog_wait)
        used = set(self._networks.values())
        self.cassandra = CassandraReader(settings.cassandra) if "cassandra" in used else None
        self.bigtable = BigtableReader(settings.bigtable) if "bigtable" in used else None
        readers = {"cassandra": self.cassandra, "bigtable": self.bigtable}
        self.by_name = {name: reader for name, reader in readers.items() if reader is not None}
        self._whole: dict[str, WholeDays] = {}
        self.refresh()

    def refresh(self) -> None:
        """Ask the catalog again which days the stores hold."""
        with self._database.read() as connection:
            readers = {
                network: served.whole(connection, network, store) for network, store in self._networks.items()
            }
        for network, days in readers.items():
            whole = self._whole.get(network)
            if whole is None or whole.days != days:
                self._whole[network] = WholeDays(whole.version + 1 if whole else 0, days)

    def whole(self, network: str) -> WholeDays | None:
        """Return the days that the store of a network holds; None if it is read from the lake alone."""
        return self._whole.get(network)

    def answer(self, network: str | None = None) -> bool:
        """Return whether the store of a network, or every store, answers."""
        names = set(self._networks.values()) if network is None else {self._networks.get(network)}
        try:
            for name, reader in self.by_name.items():
                if name in names:
                    reader.ping(time.monotonic() + _PING_SECONDS)
        except StoreUnavailableError:
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        for reader in self.by_name.values():
            reader.close()
