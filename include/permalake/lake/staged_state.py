"""What an attempt has staged, from metadata and files: no lease, no Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from permalake.contracts import Table
from permalake.lake import leases, record
from permalake.lake.catalog import locations
from permalake.lake.counts import rows_per_day
from permalake.lake.database import Database
from permalake.lake.day_rows import DayRows, latest_day_before
from permalake.lake.record import AttemptRow
from permalake.lake.state import PUBLISHED


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

    def rows(self, name: str, start: date, end: date) -> DayRows:
        """Return the rows of start..end of a table; of a side table as published."""
        return self.rows_of({name: (start, end)})[name]

    def rows_of(
        self, spans: Mapping[str, tuple[date, date]], without: Collection[date] = ()
    ) -> dict[str, DayRows]:
        """Return the same of many tables, each from its first day to its last but for some days."""
        by_table = self._readable()
        return {name: DayRows(by_table[name], start, end, without) for name, (start, end) in spans.items()}

    def published_rows(self, name: str, start: date, end: date) -> DayRows:
        """Return the rows of start..end as they were published when the attempt began."""
        with self._database.read() as connection:
            base = record.base_locations(connection, self.id)
        return DayRows(base[name], start, end)

    def latest_before(self, name: str, day: date | None = None) -> date | None:
        """Return the latest day with rows before a day, or before the attempt's days, from metadata."""
        return latest_day_before(self._readable()[name], day or self._row.start)

    def _readable(self) -> dict[str, str]:
        """Return the locations of all tables; side tables, which are committed apart, as published."""
        with self._database.read() as connection:
            published = locations(connection, PUBLISHED, self._row.network)
        side = [name for name, table in self._contracts.items() if table.commit == "side"]
        return self.locations() | {name: published[name] for name in side}
