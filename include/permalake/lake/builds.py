"""Building days: leases, attempts and publications."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import date

from permalake.config import Settings
from permalake.contracts.namespaces import Namespaces
from permalake.errors import PermalakeError
from permalake.intervals import ranges
from permalake.lake import catalog, leases, record, stale
from permalake.lake.attempt import Attempt
from permalake.lake.database import Database
from permalake.lake.held import holding
from permalake.lake.pinned_attempt import PinnedAttempt
from permalake.lake.publication_log import check_not_behind
from permalake.lake.publish import Publication, publish
from permalake.lake.record import AttemptRow
from permalake.lake.staged_state import StagedState
from permalake.lake.state import PUBLISHED
from permalake.lake.unchanged import is_unchanged


class Builds:
    """The changes of a run to the lake.

    An attempt lives in a ``with`` block, which keeps its lease alive. What is pinned in one process can be
    published in another: :meth:`pinned` finds it by its run.
    """

    def __init__(self, settings: Settings, database: Database, namespaces: Namespaces) -> None:
        self._settings = settings
        self._database = database
        self._namespaces = namespaces

    def lease(self, network: str, start: date, end: date, run_id: str, wait: float = 0.0) -> None:
        """Acquire the days for a run before its first step; creates what is missing of the network's tables.

        Raises:
            PermalakeError: if another run still builds one of these days after ``wait`` seconds; it names it.
        """
        catalog.ensure(self._settings, self._database, network, self._namespaces(network).tables)
        leases.take(self._database, network, start, end, run_id=run_id, wait=wait)

    def release(self, network: str, run_id: str) -> None:
        """Release the days that a run holds of a network: it is over, for better or worse."""
        leases.release(self._database, network, run_id)

    @contextmanager
    def begin(
        self,
        network: str,
        start: date,
        end: date,
        run_id: str,
        *,
        fingerprint: str = "",
        wait: float = 0.0,
    ) -> Iterator[Attempt]:
        """Begin an attempt of start..end (inclusive) on what is published now; it acquires the lease.

        ``fingerprint`` is any text that stays the same as long as the input does. Earlier unpublished
        attempts over these days are superseded.

        Raises:
            PermalakeError: as :meth:`lease`, and if the catalog lacks publications that the warehouse has.
        """
        if end < start:
            raise PermalakeError(f"{network}: {end} lies before {start}")
        check_not_behind(self._settings, self._database)
        self.lease(network, start, end, run_id, wait)
        with self._database.write() as connection:
            leases.lock_network(connection, network)  # a mark of stale days comes before or after it
            row = record.begin(connection, network, start, end, run_id=run_id, fingerprint=fingerprint)
        with holding(self._database, row) as held:
            yield Attempt(self._settings, held, self._namespaces(network).tables)

    @contextmanager
    def resume(self, network: str, run_id: str) -> Iterator[Attempt]:
        """Resume the newest attempt of a run; it acquires the lease again.

        Raises:
            PermalakeError: if there is none, or it is over.
        """
        with holding(self._database, self._newest(network, run_id, ("open",))) as held:
            yield Attempt(self._settings, held, self._namespaces(network).tables)

    @contextmanager
    def resume_or_begin(self, network: str, start: date, end: date, run_id: str) -> Iterator[Attempt]:
        """Resume the run's attempt; begin one for a run that starts at a later step and has none.

        What it begins goes on with the rows, notes and gaps of the published days.

        Raises:
            PermalakeError: as :meth:`resume` and :meth:`begin`.
        """
        with self._database.read() as connection:
            begun = record.newest(connection, network, run_id) is not None
        resumed = self.resume(network, run_id) if begun else self.begin(network, start, end, run_id)
        with resumed as attempt:
            if not begun:
                attempt.record.keep()
            yield attempt

    @contextmanager
    def pinned(self, network: str, run_id: str) -> Iterator[PinnedAttempt]:
        """Return the newest attempt of a run as it was pinned, published ones too; it acquires the lease.

        Raises:
            PermalakeError: if there is none, nothing is pinned, or its staging is gone.
        """
        row = self._newest(network, run_id, ("open", "published"))
        if not row.pinned_at:
            raise PermalakeError(
                f"{network} {leases.format_range(row.start, row.end)}: nothing is pinned; "
                "audit it before it is published"
            )
        with holding(self._database, row) as held:
            yield PinnedAttempt(self._settings, held, self._namespaces(network).tables)

    def staged(self, network: str, run_id: str) -> StagedState | None:
        """Return what a run's newest attempt has staged; None if there is none or its staging is gone.

        The run goes on: a lease that it still holds is renewed.
        """
        with self._database.read() as connection:
            row = record.newest(connection, network, run_id)
        if row is None or row.state not in {"open", "published"}:
            return None
        leases.beat(self._database, network, run_id)
        return StagedState(self._database, row, self._namespaces(network).tables)

    def publish(self, pinned: PinnedAttempt) -> Publication:
        """Publish the passing days, all tables in one transaction, and release the lease.

        Published again, it changes nothing and returns the earlier publication.
        """
        return publish(self._settings, self._database, pinned)

    def unfinished(self, network: str, start: date, end: date) -> str | None:
        """Return the run whose staging of exactly these days is pinned but not published, if there is one."""
        with self._database.read() as connection:
            return record.unfinished(connection, network, start, end)

    def is_unchanged(self, network: str, start: date, end: date, fingerprint: str) -> bool:
        """Return whether every day of start..end was last published from input with this fingerprint.

        Days that are refused, failed or stale since count as changed.

        Raises:
            UnreadableTableError: if a published table is damaged: nobody can say what it holds.
        """
        with self._database.read() as connection:
            unchanged = is_unchanged(connection, network, start, end, fingerprint)
            published = catalog.locations(connection, PUBLISHED, network)
        if unchanged and (faults := catalog.unreadable(published)):
            raise next(iter(faults.values()))
        return unchanged

    def mark_stale(self, network: str, days: Iterable[date], reason: str) -> None:
        """Mark published days as stale: their input or basis has changed.

        The next publication of the day clears the mark, unless the day is being built already.
        """
        with self._database.write() as connection:
            leases.lock_network(connection, network)
            for start, end in ranges(days):
                stale.mark(connection, network, start, end, reason)

    def _newest(self, network: str, run_id: str, states: Collection[str]) -> AttemptRow:
        """Return the newest attempt of a run, which must be in one of these states; lease an open one."""
        with self._database.read() as connection:
            row = record.newest(connection, network, run_id)
        if row is None:
            raise PermalakeError(f"{network}: run {run_id} has begun nothing; run it from its first step")
        if row.state not in states:
            raise PermalakeError(
                f"{network} {leases.format_range(row.start, row.end)}: the staging of run {run_id} was "
                f"{row.state}; run it from its first step"
            )
        if row.state == "open":
            leases.take(self._database, network, row.start, row.end, run_id=run_id)
        return row
