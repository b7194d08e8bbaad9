"""Facts of a build about its days, beside their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date

from sqlalchemy import select

from permalake.errors import PermalakeError
from permalake.lake import record, stale
from permalake.lake.database import Database
from permalake.lake.leases import format_range
from permalake.lake.record import AttemptRow
from permalake.lake.state import attempt_days, now


class DayRecord:
    """Notes, gaps, invalid days and announced stale days of one attempt, for ``permalake status``."""

    def __init__(self, database: Database, row: AttemptRow) -> None:
        self._database = database
        self._row = row

    def refuse(self, day: date, reason: str) -> None:
        """Mark a day as invalid: it will not be published, readers stay on its last good state.

        ``reason`` becomes one line.
        """
        check_day(self._row, day)
        line = " ".join(reason.split())
        with self._database.write() as connection:
            record.set_attempt_day(connection, self._row.attempt_id, day, refused=line)
            record.set_day(
                connection,
                self._row.network,
                day,
                refused=line,
                run_id=self._row.run_id,
                attempt_id=self._row.attempt_id,
                built_at=now(),
                audited=None,
                failures=None,
            )

    @property
    def refused(self) -> dict[date, str]:
        """Invalid days with their reasons."""
        with self._database.read() as connection:
            return record.refusals(connection, self._row.attempt_id)

    def note(self, text: str, day: date | None = None) -> None:
        """Add a remark to one day, or to every day of the attempt."""
        line = " ".join(text.split())
        attempt_id = self._row.attempt_id
        with self._database.write() as connection:
            if day is None:
                record.add_note(connection, attempt_id, line)
                return
            check_day(self._row, day)
            here = (attempt_days.c.attempt_id == attempt_id, attempt_days.c.date == day)
            old = json.loads(connection.execute(select(attempt_days.c.notes).where(*here)).scalar() or "[]")
            if line not in old:
                record.set_attempt_day(connection, attempt_id, day, notes=json.dumps([*old, line]))

    def keep(self) -> None:
        """Take over the notes and gaps of what is published, on whose rows the attempt goes on."""
        with self._database.write() as connection:
            record.keep_facts(connection, self._row)

    def drop(self, *topics: str) -> None:
        """Drop the remarks that begin with one of these words: a step that runs again says what holds now."""
        with self._database.write() as connection:
            record.drop_notes(connection, self._row.attempt_id, topics)

    def report_gaps(self, day: date, lines: Sequence[str]) -> None:
        """Record what the source of a day lacks; shown once the day is published."""
        check_day(self._row, day)
        with self._database.write() as connection:
            record.set_attempt_day(connection, self._row.attempt_id, day, gaps=json.dumps(list(lines)))

    def announce_stale(self, start: date, end: date, reason: str, cause: date | None = None) -> None:
        """Mark published days of start..end stale once the attempt publishes its day ``cause``.

        What they were built from has changed with that day. ``cause`` is the attempt's last day by default.
        """
        cause = cause or self._row.end
        check_day(self._row, cause)
        with self._database.write() as connection:
            stale.expect(connection, self._row, start, end, reason, cause=cause)


def check_day(row: AttemptRow, day: date) -> None:
    """Check that a day belongs to an attempt.

    Raises:
        PermalakeError: if it does not.
    """
    if not row.start <= day <= row.end:
        raise PermalakeError(f"{day} does not belong to {row.network} {format_range(row.start, row.end)}")
