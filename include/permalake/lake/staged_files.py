"""Rows of an attempt, read from their files in this process: no Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from permalake.lake import record
from permalake.lake.catalog import locations
from permalake.lake.database import Database
from permalake.lake.day_rows import DayRows, latest_day_before
from permalake.lake.record import AttemptRow
from permalake.lake.staged_state import StagedState
from permalake.lake.state import PUBLISHED


class StagedFiles:
    """The tables of one attempt as its audit reads them; side tables as they are published."""

    def __init__(self, database: Database, row: AttemptRow, state: StagedState) -> None:
        self._database = database
        self._row = row
        self._state = state

    def rows(self, name: str, start: date, end: date, without: Collection[date] = ()) -> DayRows:
        """Return the rows of start..end, but for some days."""
        return self.rows_of({name: (start, end)}, without)[name]

    def rows_of(
        self, spans: Mapping[str, tuple[date, date]], without: Collection[date] = ()
    ) -> dict[str, DayRows]:
        """Return the same of many tables, each from its first day to its last."""
        by_table = self._locations
        return {name: DayRows(by_table[name], start, end, without) for name, (start, end) in spans.items()}

    def published_rows(self, name: str, start: date, end: date) -> DayRows:
        """Return the rows of start..end as they were published when the attempt began."""
        with self._database.read() as connection:
            base = record.base_locations(connection, self._row.attempt_id)
        return DayRows(base[name], start, end)

    def latest_before(self, name: str, day: date | None = None) -> date | None:
        """Return the latest day with rows before a day, or before the attempt's days, from metadata."""
        return latest_day_before(self._locations[name], day or self._row.start)

    @property
    def _locations(self) -> dict[str, str]:
        with self._database.read() as connection:
            published = locations(connection, PUBLISHED, self._row.network)
        return self._state.locations() | {name: published[name] for name in self._state.side_tables}
