"""What an attempt has staged, from metadata alone: no lease, no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from permalake.contracts import Table
from permalake.lake import leases, record
from permalake.lake.catalog import locations
from permalake.lake.counts import rows_per_day
from permalake.lake.database import Database
from permalake.lake.record import AttemptRow


class StagedState:
    """The tables of one attempt as staged, or as pinned once they are pinned.

    It counts the tables that the attempt publishes: those of days, or the carried ones.
    """

    def __init__(self, database: Database, row: AttemptRow, contracts: Mapping[str, Table]) -> None:
        self.id = row.attempt_id
        self._database = database
        self._row = row
        self._contracts = contracts

    def changed(self) -> dict[str, str]:
        """Return the tables that the attempt changed, with their metadata locations."""
        with self._database.read() as connection:
            base = record.base_locations(connection, self.id)
            pinned = record.pinned_locations(connection, self.id)
            staged = locations(connection, self.id, self._row.network)
        if pinned:
            return pinned
        return {name: at for name, at in staged.items() if at != base.get(name)}

    def locations(self) -> dict[str, str]:
        """Return the metadata locations of all tables."""
        with self._database.read() as connection:
            base = record.base_locations(connection, self.id)
        return base | self.changed()

    @property
    def side_tables(self) -> list[str]:
        """Tables that are committed apart from the attempt."""
        return [name for name, table in self._contracts.items() if table.commit == "side"]

    def counts(self) -> dict[str, dict[date, int]]:
        """Return the rows per table and day of the attempt.

        Tables that are published apart are left out: a row there does not make a day.
        """
        contracts = self._contracts
        commit = "day" if self._row.kind == leases.DAYS else "carried"
        return {
            name: rows_per_day(location, self._row.start, self._row.end)
            for name, location in self.locations().items()
            if name in contracts and contracts[name].commit == commit
        }
