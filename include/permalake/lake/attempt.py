"""An attempt: one private staging of a range of days, from its beginning to its pin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts import QUARANTINE, Table
from permalake.errors import PermalakeError
from permalake.lake import side_tables, staging, task_files
from permalake.lake.catalog import move_pointer, open_table
from permalake.lake.counts import day_of, files
from permalake.lake.day_record import DayRecord
from permalake.lake.held import LeasedAttempt
from permalake.lake.leases import format_range
from permalake.lake.pinned_attempt import PinnedAttempt, pin
from permalake.lake.side_tables import Rewrite
from permalake.lake.staged_tables import OpenStaging
from permalake.lake.task_files import WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Attempt(OpenStaging):
    """A staging of the days start..end of a network that readers never see.

    :class:`permalake.lake.Builds` gives it to a ``with`` block and keeps its lease alive until the block
    ends. ``record`` takes what there is to say about its days. Only :meth:`pin` leads to verdicts and to a
    publication.
    """

    def __init__(self, settings: Settings, held: LeasedAttempt, contracts: Mapping[str, Table]) -> None:
        super().__init__(settings, held, contracts)
        self.record = DayRecord(held.database, held.row)

    def __repr__(self) -> str:
        return f"Attempt({self.id}, {self.network} {format_range(self.start, self.end)}, run {self.run_id})"

    def stage(self, frame: DataFrame, contract: Table) -> None:
        """Replace start..end of a staged table by the frame's rows (select, cast, sort by contract).

        An empty frame leaves no rows.

        Raises:
            PermalakeError: if a column is missing, a row lies outside start..end, the table is carried, or
                the staging is gone.
        """
        if contract.name == QUARANTINE.name:
            raise PermalakeError("quarantine rows are committed apart; use Attempt.quarantine")
        if contract.commit == "carried":
            raise PermalakeError(f"{contract.name} is carried, not built with a day; use Carries")
        before = self._held.location(contract.name)
        staging.bind(frame.sparkSession, self._settings, self.id)
        name = staging.full_name(self.id, self.network, contract.name)
        staging.replace(staging.shape(frame, contract), contract, name, self.start, self.end)
        after = self._held.location(contract.name)
        if stray := self._stray_days(before, after):
            with self._database.write() as connection:
                move_pointer(connection, self.id, self.network, contract.name, old=after, new=before)
            raise PermalakeError(
                f"{contract.name}: rows of {format_range(min(stray), max(stray))} do not belong to "
                f"{format_range(self.start, self.end)}"
            )

    def stage_files(self, files: Iterable[WrittenFile], contracts: Iterable[Table]) -> None:
        """Replace start..end of staged tables by files that tasks wrote; one without files has no rows then.

        Raises:
            PermalakeError: if a file's day lies outside start..end, or the staging is gone.
        """
        self._held.locations()
        every = {contract.name: lambda _: True for contract in contracts}
        task_files.register(self._settings, self._row, files, every)

    def _stray_days(self, before: str, after: str) -> set[date]:
        old_paths = {file.file_path for file in files(open_table(before))} if before != after else set()
        written = files(open_table(after)) if before != after else iter(())
        new = {day_of(file) for file in written if file.file_path not in old_paths}
        return {day for day in new if not self.start <= day <= self.end}

    def quarantine(self, rewrite: Rewrite) -> int:
        """Replace the quarantine rows of start..end, seen by readers at once; return how many there are.

        ``rewrite`` is given the rows that are published, and returns the files that replace them; None to
        keep them. It is called again if another process published the table meanwhile.
        """
        self._held.location(QUARANTINE.name)
        return side_tables.quarantine(self._settings, self._database, self._row, rewrite)

    def pin(self) -> PinnedAttempt:
        """Fix what the audit judges and ``publish`` moves.

        A second pin of the same state changes nothing; of another state it drops the verdicts.
        """
        pin(self._database, self._row, self._held.locations(), self.staged)
        return PinnedAttempt(self._settings, self._held, self._contracts)
