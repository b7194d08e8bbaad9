"""A pinned attempt: what the audit judges and what is published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date

from permalake.config import Settings
from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.lake import record
from permalake.lake.database import Database
from permalake.lake.day_record import check_day
from permalake.lake.held import LeasedAttempt
from permalake.lake.leases import format_range, lock_network
from permalake.lake.record import AttemptRow
from permalake.lake.staged_state import StagedState
from permalake.lake.staged_tables import StagedTables
from permalake.lake.state import now


class PinnedAttempt(StagedTables):
    """The state of an attempt that is fixed. It alone takes verdicts, and it alone can be published."""

    def __init__(self, settings: Settings, held: LeasedAttempt, contracts: Mapping[str, Table]) -> None:
        super().__init__(settings, held, contracts)
        with self._database.read() as connection:
            self._pinned = record.pinned_locations(connection, self.id)

    @property
    def refused(self) -> dict[date, str]:
        """Invalid days with their reasons."""
        with self._database.read() as connection:
            return record.refusals(connection, self.id)

    def days_with_rows(self) -> list[date]:
        """Return the days of start..end that hold rows in any table and are not refused."""
        refused = self.refused
        present = {day for per_day in self.staged.counts().values() for day in per_day}
        return sorted(present - set(refused))

    def verdict(self, day: date, ok: bool, failures: Sequence[str] = ()) -> None:
        """Record what the audit says of a day; ``failures`` name the expectations, a line each.

        Raises:
            PermalakeError: if the day is none of the attempt's, or another state was pinned since.
        """
        check_day(self._row, day)
        values: dict[str, object] = {
            "audited": "passed" if ok else "failed",
            "failures": json.dumps([" ".join(line.split()) for line in failures]),
        }
        with self._database.write() as connection:
            if record.pinned_locations(connection, self.id) != self._pinned:
                raise PermalakeError(
                    f"{self.network} {format_range(self.start, self.end)}: tables were staged and pinned "
                    "again during the audit; audit them again"
                )
            record.set_attempt_day(connection, self.id, day, **values)
            record.set_day(connection, self.network, day, run_id=self.run_id, attempt_id=self.id, **values)

    def verdicts(self) -> dict[date, tuple[bool, list[str]]]:
        """Return what the audit said so far: day -> (ok, failures)."""
        with self._database.read() as connection:
            return record.verdicts(connection, self.id)


def pin(database: Database, row: AttemptRow, staged: dict[str, str], state: StagedState) -> None:
    """Record the staged locations as pinned, and its days as built."""
    with database.write() as connection:
        record.pin(connection, row.attempt_id, staged)
    present = {day for per_day in state.counts().values() for day in per_day}
    with database.write() as connection:
        lock_network(connection, row.network)
        refused = record.refusals(connection, row.attempt_id)
        recorded_days = record.known_days(connection, row.network, row.start, row.end)
        verdicts = record.verdicts(connection, row.attempt_id)
        for day in sorted((present | recorded_days) - set(refused) - set(verdicts)):
            record.set_day(
                connection,
                row.network,
                day,
                built_at=now(),
                run_id=row.run_id,
                attempt_id=row.attempt_id,
                refused=None,
                audited=None,
                failures=None,
            )
