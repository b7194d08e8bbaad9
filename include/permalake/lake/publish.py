"""Publishing: all tables of the passing days at once, or none."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date

from sqlalchemy import Connection, select

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake import leases, record, stale
from permalake.lake.commit import MovedMeanwhileError, change, move, record_publication
from permalake.lake.database import Database
from permalake.lake.fixed_settings import fix_settings
from permalake.lake.head_edit import HeadEdit, without_days
from permalake.lake.pinned_attempt import PinnedAttempt
from permalake.lake.record import AttemptRow
from permalake.lake.replay import Moves, staged_moves
from permalake.lake.state import days, publications


@dataclass(frozen=True)
class Publication:
    """The result of a publish. ``id`` is None when no day passed, and then nothing moved.

    ``days``: published days that hold rows, held rows before or have notes; ``rows``: their rows per table;
    ``withheld``: days that stay as they were, with the reason; ``replayed``: others had published
    meanwhile, or a day was withheld; ``repeated``: it had been published before.
    """

    id: int | None
    network: str
    start: date
    end: date
    published_at: str | None = None
    days: tuple[date, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    withheld: dict[date, str] = field(default_factory=dict)
    replayed: bool = False
    repeated: bool = False


def publish(settings: Settings, database: Database, attempt: PinnedAttempt) -> Publication:
    """Move the pinned tables' pointers of the attempt's passing days in one transaction."""
    work = _Publish(settings, database, attempt)

    def once() -> Publication:
        with database.read() as connection:
            if done := work.earlier(connection):
                return done
        work.prepare()
        return work.give_up() if work.nothing_passed else work.move(work.moves(), work.head())

    return change(settings, database, f"{work.name}; publish it again", once)


class _Publish:
    def __init__(self, settings: Settings, database: Database, attempt: PinnedAttempt) -> None:
        self._settings = settings
        self._database = database
        self._attempt = attempt
        self.name = f"{attempt.network} {leases.format_range(attempt.start, attempt.end)}"
        self._row: AttemptRow
        self._pinned: dict[str, str] = {}
        self._counts: dict[str, dict[date, int]] = {}
        self._withheld: dict[date, str] = {}

    def prepare(self) -> None:
        """Read what was pinned and judged; an error unless every day with rows was judged or refused."""
        with self._database.read() as connection:
            self._row = self._standing(connection)
            self._pinned = record.pinned_locations(connection, self._row.attempt_id)
            verdicts = record.verdicts(connection, self._row.attempt_id)
            self._withheld = record.withheld(connection, self._row.attempt_id)
        self._counts = self._attempt.staged.counts()
        if unjudged := sorted(self._days_with_rows() - set(self._withheld) - set(verdicts)):
            raise PermalakeError(
                f"{self._row.network} {unjudged[0]}: not audited yet; audit it before it is published"
            )

    def _days_with_rows(self) -> set[date]:
        return {day for per_day in self._counts.values() for day in per_day}

    def _standing(self, connection: Connection) -> AttemptRow:
        """Return the attempt's row while it is open.

        A run that lost its lease (it was taken for dead) must not undo what its successor published.
        """
        row = record.load(connection, self._attempt.id)
        if row is None or row.state != "open":
            raise PermalakeError(
                f"{self.name}: the staging of run {self._attempt.run_id} is gone; run it again"
            )
        return row

    @property
    def nothing_passed(self) -> bool:
        return len(self._withheld) == (self._row.end - self._row.start).days + 1

    def give_up(self) -> Publication:
        """Nothing moves; others may build these days."""
        with self._database.write() as connection:
            self._release(connection)
        return Publication(None, self._row.network, self._row.start, self._row.end, withheld=self._withheld)

    def _release(self, connection: Connection) -> None:
        row = self._row
        leases.release_days(connection, row.network, row.start, row.end, run_id=row.run_id)

    def moves(self) -> Moves:
        """Return what is pinned, without the days that do not pass."""
        return staged_moves(self._settings, self._database, self._row, self._pinned, self._withheld)

    def head(self) -> HeadEdit:
        """Return the network's live head without the days that are published."""
        row = self._row
        with self._database.read() as connection:
            gone = self._published_days(connection)
        private = f"{row.attempt_id}_live"
        return without_days(self._settings, self._database, row.network, private, gone)

    def _published_days(self, connection: Connection) -> list[date]:
        """Return the days that pass and have rows, or of which the lake has something to say.

        It may have said it before, or this attempt notes it: that the source ends before the day.
        """
        row = self._row
        recorded_days = record.known_days(connection, row.network, row.start, row.end)
        _, noted = record.notes(connection, row.attempt_id)
        return sorted((self._days_with_rows() | recorded_days | noted.keys()) - set(self._withheld))

    def move(self, moves: Moves, head: HeadEdit) -> Publication:
        """All pointers by compare and set, the record and the days' states, in one transaction."""
        with self._database.write() as connection:
            if done := self.earlier(connection):
                return done
            self._standing(connection)
            leases.lock_network(connection, self._row.network)
            if not head.apply(connection):
                raise MovedMeanwhileError(f"{self._row.network}: its head")
            if self._days_with_rows() - set(self._withheld):
                fix_settings(connection, self._settings, self._row.network)
            move(connection, self._row.network, moves)
            return self._record(connection, moves)

    def _record(self, connection: Connection, moves: Moves) -> Publication:
        row = self._row
        moved = {name: new for name, (_, new) in moves.items()}
        replayed = any(new != self._pinned[name] for name, new in moved.items())
        published = self._published_days(connection)
        publication_id, published_at = record_publication(
            connection,
            row,
            "days",
            moved,
            replayed=replayed,
            withdrawn=record.withdrawn(
                connection, row.network, moves.keys(), {day: self._rows_of(day) for day in published}
            ),
            withheld=self._withheld,
        )
        whole, single = record.notes(connection, row.attempt_id)
        gaps = record.gaps(connection, row.attempt_id)
        for day in published:
            record.set_day(
                connection,
                row.network,
                day,
                published_at=published_at,
                publication_id=publication_id,
                run_id=row.run_id,
                attempt_id=row.attempt_id,
                refused=None,
                stale_reason=None,
                rows=json.dumps(self._rows_of(day)),
                gaps=gaps.get(day),
                notes=json.dumps(list(dict.fromkeys([*whole, *single.get(day, [])]))),
            )
        stale.published(connection, row, published)
        record.close(connection, row.attempt_id, "published", publication_id)
        stale.forget(connection, row.network)
        self._release(connection)
        done = self.earlier(connection)
        if done is None:
            raise PermalakeError(f"{self.name}: the publication was not recorded; publish it again")
        return replace(done, repeated=False)

    def _rows_of(self, day: date) -> dict[str, int]:
        counts = {name: per_day.get(day, 0) for name, per_day in sorted(self._counts.items())}
        return {name: count for name, count in counts.items() if count}

    def earlier(self, connection: Connection) -> Publication | None:
        """Return the publication of this very attempt, if there is one."""
        attempt = self._attempt
        selected = connection.execute(
            select(publications).where(publications.c.attempt_id == attempt.id, publications.c.kind == "days")
        ).first()
        if selected is None:
            return None
        published = connection.execute(
            select(days.c.date, days.c.rows)
            .where(days.c.network == attempt.network, days.c.publication_id == selected.id)
            .order_by(days.c.date)
        ).all()
        rows: Counter[str] = Counter()
        for _, text in published:
            rows.update(json.loads(text or "{}"))
        return Publication(
            id=selected.id,
            network=attempt.network,
            start=attempt.start,
            end=attempt.end,
            published_at=selected.published_at,
            days=tuple(row.date for row in published),
            rows=dict(sorted(rows.items())),
            withheld=record.withheld(connection, attempt.id),
            replayed=bool(selected.replayed),
            repeated=True,
        )
