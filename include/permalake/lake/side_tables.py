"""Side tables: committed apart from a day's publication, seen by readers at once.

These are the quarantine, so that a day that stays unpublished shows why, and caches that only grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts import QUARANTINE, Table
from permalake.lake import record, staging, task_files
from permalake.lake.commit import commit_apart
from permalake.lake.counts import rows_per_day
from permalake.lake.day_rows import DayRows
from permalake.lake.record import AttemptRow
from permalake.lake.state import Database
from permalake.lake.task_files import WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Rewrite = Callable[[DayRows], Iterable[WrittenFile] | None]


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


def append_new(
    settings: Settings, database: Database, attempt: AttemptRow, frame: DataFrame, contract: Table
) -> int:
    """Add the rows of ``frame`` whose key is new to the table; return how many."""
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    name = staging.full_name(attempt.attempt_id, attempt.network, contract.name)
    staging.bind(spark, settings, attempt.attempt_id)
    rows = staging.shape(frame, contract).dropDuplicates(list(contract.key)).persist()
    days = rows.agg(f.min("date"), f.max("date")).first()
    if days is None or days[0] is None:
        rows.unpersist()
        return 0
    added = 0

    def write(_published: str) -> None:
        nonlocal added
        # A key's date is always the same, so that the cost does not grow with the table.
        old = spark.read.table(name).where(staging.span(days[0], days[1]))
        new = rows.alias("new").join(old.alias("old"), _same_key(contract), "left_anti").persist()
        try:
            added = new.count()
            if added:
                staging.append(new, contract, name)
        finally:
            new.unpersist()

    try:
        commit_apart(settings, database, attempt, contract.name, kind="cache", write=write)
    finally:
        rows.unpersist()
    return added


def _same_key(contract: Table) -> Column:
    from pyspark.sql import functions as f

    equal = [f.col(f"new.{name}").eqNullSafe(f.col(f"old.{name}")) for name in contract.key]
    return reduce(lambda left, right: left & right, equal)


def _record_quarantined(database: Database, attempt: AttemptRow, counted: dict[date, int]) -> None:
    with database.write() as connection:
        known = record.known_days(connection, attempt.network, attempt.start, attempt.end)
        for day in known | set(counted):
            record.set_day(connection, attempt.network, day, quarantined=counted.get(day, 0))
