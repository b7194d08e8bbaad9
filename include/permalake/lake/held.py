"""The holdings of an attempt while its block lasts: the lease of its days and its private pointers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from permalake.errors import PermalakeError
from permalake.lake.catalog import locations
from permalake.lake.database import Database
from permalake.lake.leases import Heartbeat, beat, format_range
from permalake.lake.record import AttemptRow


class LeasedAttempt:
    """The days of one attempt. Every look at its staging checks that they are still held."""

    def __init__(self, database: Database, row: AttemptRow, heartbeat: Heartbeat | None) -> None:
        self.database = database
        self.row = row
        self._heartbeat = heartbeat

    def locations(self) -> dict[str, str]:
        """Return the metadata location of every staged table.

        Raises:
            PermalakeError: if the lease is lost, the attempt is over, or its ``with`` block has ended.
        """
        row, heartbeat = self.row, self._heartbeat
        if heartbeat is not None and not heartbeat.beating:
            raise PermalakeError(
                f"{self._days()}: the block of run {row.run_id} has ended; resume its attempt"
            )
        if heartbeat is None or not beat(self.database, row.network, row.run_id, row.kind):
            raise self._gone()
        with self.database.read() as connection:
            staged = locations(connection, row.attempt_id, row.network)
        if not staged:
            raise self._gone()
        return staged

    def location(self, table: str) -> str:
        """Return the metadata location of one staged table; raises as :meth:`locations` does."""
        staged = self.locations()
        if table not in staged:
            raise PermalakeError(f"{self.row.network}.{table} is no table of the lake")
        return staged[table]

    def _days(self) -> str:
        return f"{self.row.network} {format_range(self.row.start, self.row.end)}"

    def _gone(self) -> PermalakeError:
        return PermalakeError(
            f"{self._days()}: the staging of run {self.row.run_id} was published or superseded meanwhile; "
            "run it again"
        )


@contextmanager
def holding(database: Database, row: AttemptRow) -> Iterator[LeasedAttempt]:
    """Keep the lease of an open attempt alive as long as the block lasts."""
    if row.state != "open":
        yield LeasedAttempt(database, row, None)
        return
    with Heartbeat(database, row.network, row.run_id, row.kind) as heartbeat:
        yield LeasedAttempt(database, row, heartbeat)
