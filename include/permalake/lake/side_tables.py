"""Side tables: committed apart from a day's publication, seen by readers at once.

These are the quarantine, so that a day that stays unpublished shows why, and caches, whose rows change only
where somebody corrects them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts import QUARANTINE, Table
from permalake.lake import record, staging, task_files
from permalake.lake.commit import commit_apart
from permalake.lake.counts import rows_per_day
from permalake.lake.database import Database
from permalake.lake.day_rows import DayRows
from permalake.lake.record import AttemptRow
from permalake.lake.task_files import WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

log = logging.getLogger(__name__)
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
    settings: Settings,
    database: Database,
    attempt: AttemptRow,
    frame: DataFrame,
    contract: Table,
    *,
    correct: bool = False,
) -> int:
    """Add the rows of ``frame`` whose key is new to the table; return how many.

    With ``correct`` the others replace the rows of their key and date. Rows that break the table's contract
    are left out: once stored, they would fail the audit of their day for ever.
    """
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    name = staging.full_name(attempt.attempt_id, attempt.network, contract.name)
    staging.bind(spark, settings, attempt.attempt_id)
    rows = staging.shape(frame, contract).dropDuplicates(list(contract.key)).persist()
    valid = _keeps(contract)
    day = f.when(valid, f.col("date"))
    seen = rows.agg(f.min(day), f.max(day), f.count_if(~valid)).first()
    if seen and seen[2]:
        log.warning("%s: %d rows left out that break the table's contract", contract.name, seen[2])
    if seen is None or seen[0] is None:
        rows.unpersist()
        return 0
    sound, added = rows.where(valid), 0

    def write(_published: str) -> None:
        nonlocal added
        # A key's date is always the same, so that the cost does not grow with the table.
        old = spark.read.table(name).where(staging.span(seen[0], seen[1]))
        new = sound.alias("new").join(old.alias("old"), _same_key(contract), "left_anti").persist()
        try:
            added = new.count()
            if correct:
                staging.update(sound, contract, name)
            if added:
                staging.append(new, contract, name)
        finally:
            new.unpersist()

    try:
        commit_apart(settings, database, attempt, contract.name, kind="cache", write=write)
    finally:
        rows.unpersist()
    return added


def _keeps(contract: Table) -> Column:
    """Return whether a row keeps to the rules of each column."""
    from pyspark.sql import functions as f

    kept = f.lit(True)
    for column in contract.columns:
        value = f.col(column.name)
        rules = [value.isNotNull()]
        if column.pattern:
            rules.append(value.rlike(column.pattern))
        if column.values:
            rules.append(value.isin(*column.values))
        if column.minimum is not None:
            rules.append(value >= column.minimum)
        if column.maximum is not None:
            rules.append(value <= column.maximum)
        kept &= f.coalesce(reduce(lambda left, right: left & right, rules), f.lit(False)) | (
            f.lit(not column.required) & value.isNull()
        )
    return kept


def _same_key(contract: Table) -> Column:
    from pyspark.sql import functions as f

    equal = [f.col(f"new.{name}").eqNullSafe(f.col(f"old.{name}")) for name in contract.key]
    return reduce(lambda left, right: left & right, equal)


def _record_quarantined(database: Database, attempt: AttemptRow, counted: dict[date, int]) -> None:
    with database.write() as connection:
        recorded_days = record.known_days(connection, attempt.network, attempt.start, attempt.end)
        for day in recorded_days | set(counted):
            record.set_day(connection, attempt.network, day, quarantined=counted.get(day, 0))
