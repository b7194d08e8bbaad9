"""Carrying: staging the carried tables of published days, and publishing them at once.

A day's record names the publication of the day that its carried rows rest on (``carried_id``). A day is
carried while that is the day's own, current publication. Carrying begins at the first published day that is
not, and ends at the last published day.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Connection, select

from permalake.config import Settings
from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces
from permalake.lake import catalog, leases, record, task_files
from permalake.lake.commit import change, move, record_publication
from permalake.lake.counts import rows_per_day
from permalake.lake.database import Database
from permalake.lake.held import LeasedAttempt
from permalake.lake.publication_log import check_not_behind
from permalake.lake.replay import Moves, staged_moves
from permalake.lake.staged_tables import OpenStaging
from permalake.lake.state import days
from permalake.lake.task_files import WrittenFile


@dataclass(frozen=True, slots=True)
class PendingDays:
    """Published days of a network in order that carrying has to go through: date -> publication."""

    days: Mapping[date, int]

    @property
    def span(self) -> tuple[date, date]:
        """First and last of them."""
        return min(self.days), max(self.days)


def waiting(connection: Connection, network: str) -> PendingDays | None:
    """Return the published days from the first one that is not carried; None when all are."""
    rows = connection.execute(
        select(days.c.date, days.c.publication_id, days.c.carried_id)
        .where(days.c.network == network, days.c.publication_id.is_not(None))
        .order_by(days.c.date)
    ).all()
    first = next((row.date for row in rows if row.carried_id != row.publication_id), None)
    if first is None:
        return None
    return PendingDays({row.date: row.publication_id for row in rows if row.date >= first})


class CarryAttempt(OpenStaging):
    """A private staging of the carried tables of start..end, on the published state of one moment.

    :meth:`Carries.begin` gives it to a ``with`` block and keeps the network's lease for carrying alive until
    the block ends.
    """

    def __init__(
        self, settings: Settings, held: LeasedAttempt, contracts: Mapping[str, Table], basis: PendingDays
    ) -> None:
        super().__init__(settings, held, contracts)
        self.refused: dict[date, str] = {}
        self._basis = basis

    @property
    def published_days(self) -> list[date]:
        """The published days of start..end, in order."""
        return sorted(self._basis.days)

    def stage_files(self, files: Iterable[WrittenFile], changed: Mapping[str, Collection[date]]) -> None:
        """Replace the changed days of each table by files; a day without files has no rows then.

        Raises:
            PermalakeError: if a file's day lies outside start..end, or the staging is gone.
        """
        self._held.locations()
        belongs = {name: days.__contains__ for name, days in changed.items() if days}
        task_files.register(self._settings, self._row, files, belongs)

    def publish(self) -> dict[str, int]:
        """Move the pointers of all staged tables in one transaction; return their rows of start..end.

        Days that were published since the attempt began stay uncarried.
        """
        staged = self.staged.changed()
        counts = self.staged.counts()
        what = f"{self.network}: its carried tables; run it again"
        change(
            self._settings,
            self._database,
            what,
            lambda: self._move(
                staged_moves(self._settings, self._database, self._row, staged), staged, counts
            ),
        )
        return {name: sum(per_day.values()) for name, per_day in sorted(counts.items())}

    def _move(self, moves: Moves, staged: Mapping[str, str], counts: Mapping[str, dict[date, int]]) -> None:
        """Move all pointers by compare and set, and record it."""
        self._held.locations()  # the lease still holds
        moved = {name: new for name, (_, new) in moves.items()}
        replayed = any(moved[name] != at for name, at in staged.items())
        withdrawn = _withdrawn(moves, self.start, self.end)
        with self._database.write() as connection:
            leases.lock_network(connection, self.network)
            move(connection, self.network, moves)
            publication, _ = record_publication(
                connection, self._row, leases.CARRY, moved, replayed=replayed, withdrawn=withdrawn
            )
            self._record_days(connection, counts)
            record.close(connection, self.id, "published", publication)

    def _record_days(self, connection: Connection, counts: Mapping[str, dict[date, int]]) -> None:
        for row in connection.execute(
            select(days.c.date, days.c.rows).where(
                days.c.network == self.network, days.c.date.in_(self.published_days)
            )
        ).all():
            rows = {name: n for name, n in json.loads(row.rows or "{}").items() if name not in counts}
            rows |= {name: per_day[row.date] for name, per_day in counts.items() if row.date in per_day}
            record.set_day(
                connection,
                self.network,
                row.date,
                carried_id=self._basis.days[row.date],
                rows=json.dumps(dict(sorted(rows.items()))),
            )


def _withdrawn(moves: Moves, start: date, end: date) -> dict[date, list[str]]:
    """Return the tables that lose all their rows of a day of start..end, by day.

    The record of a day cannot say: once a day is published again, it lists the tables of the day alone.
    """
    lost: dict[date, list[str]] = defaultdict(list)
    for name, (before, after) in sorted(moves.items()):
        for day in rows_per_day(before, start, end).keys() - rows_per_day(after, start, end).keys():
            lost[day].append(name)
    return lost


class Carries:
    """Carrying the networks of a lake: one run at a time for each."""

    def __init__(self, settings: Settings, database: Database, namespaces: Namespaces) -> None:
        self._settings = settings
        self._database = database
        self._namespaces = namespaces

    def waiting(self, network: str) -> PendingDays | None:
        """Return the published days from the first one that is not carried; None when all are."""
        with self._database.read() as connection:
            return waiting(connection, network)

    @contextmanager
    def begin(self, network: str, run_id: str, *, wait: float = 0.0) -> Iterator[CarryAttempt | None]:
        """Begin to carry what is published now; None when every published day is carried.

        Raises:
            PermalakeError: if another run still carries this network after ``wait`` seconds; it names it.
        """
        check_not_behind(self._settings, self._database)
        contracts = self._namespaces(network).tables
        catalog.ensure(self._settings, self._database, network, contracts)
        with leases.alone(self._database, network, leases.CARRY, run_id, wait) as heartbeat:
            with self._database.write() as connection:
                leases.lock_network(connection, network)
                basis = waiting(connection, network)
                if basis is not None:
                    row = record.begin(connection, network, *basis.span, run_id=run_id, kind=leases.CARRY)
            if basis is None:
                yield None
                return
            yield CarryAttempt(
                self._settings, LeasedAttempt(self._database, row, heartbeat), contracts, basis
            )
