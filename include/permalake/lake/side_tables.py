"""Side tables: committed apart from a day's publication, seen by readers at once.

These are the quarantine, so that a day that stays unpublished shows why, and caches, whose rows change only
where somebody corrects them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import date

from permalake.config import Settings
from permalake.contracts import QUARANTINE
from permalake.lake import record, task_files
from permalake.lake.commit import commit_apart
from permalake.lake.counts import rows_per_day
from permalake.lake.database import Database
from permalake.lake.day_rows import DayRows
from permalake.lake.leases import lock_network
from permalake.lake.record import AttemptRow
from permalake.lake.task_files import WrittenFile

Rewrite = Callable[[DayRows], Iterable[WrittenFile] | None]
Addition = Callable[[DayRows], tuple[Iterable[WrittenFile], Collection[date]]]


def quarantine(settings: Settings, database: Database, attempt: AttemptRow, rewrite: Rewrite) -> int:
    """Replace the quarantine rows of the attempt's days; return how many there are.

    ``rewrite`` is given the rows of these days, and returns the files that replace them; None to keep them.
    """

    def write(published: str) -> None:
        written = rewrite(DayRows(published, attempt.start, attempt.end))
        if written is not None:
            task_files.register(settings, attempt, written, {QUARANTINE.name: lambda _: True})

    location = commit_apart(settings, database, attempt, QUARANTINE.name, kind="quarantine", write=write)
    counted = rows_per_day(location, attempt.start, attempt.end)
    _record_quarantined(database, attempt, counted)
    return sum(counted.values())


def add(
    settings: Settings,
    database: Database,
    attempt: AttemptRow,
    *,
    table: str,
    span: tuple[date, date],
    addition: Addition,
) -> None:
    """Add files of the days of ``span`` to a table.

    ``addition`` is given the rows of these days, and returns the files with the days whose rows they replace.
    """

    def write(published: str) -> None:
        written, replaced = addition(DayRows(published, *span))
        if files := {file.facts["path"]: file.data_file for file in written}:
            belongs = replaced.__contains__
            task_files.replace_days(settings, attempt, table, files, span=span, belongs=belongs)

    commit_apart(settings, database, attempt, table, kind="cache", write=write)


def _record_quarantined(database: Database, attempt: AttemptRow, counted: dict[date, int]) -> None:
    with database.write() as connection:
        lock_network(connection, attempt.network)
        recorded_days = record.known_days(connection, attempt.network, attempt.start, attempt.end)
        for day in recorded_days | set(counted):
            record.set_day(connection, attempt.network, day, quarantined=counted.get(day, 0))
