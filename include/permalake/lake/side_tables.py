"""Side tables: committed apart from a day's publication, seen by readers at once.

These are the quarantine, so that a day that stays unpublished shows why, and caches that only grow.
"""

from __future__ import annotations

from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts import QUARANTINE, Table
from permalake.lake import record, staging
from permalake.lake.commit import commit_apart
from permalake.lake.counts import rows_per_day
from permalake.lake.record import AttemptRow
from permalake.lake.state import Database

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def quarantine(settings: Settings, database: Database, attempt: AttemptRow, frame: DataFrame) -> int:
    """Replace the quarantine rows of the attempt's days by those of ``frame``; return how many there are."""
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    name = staging.full_name(attempt.attempt_id, attempt.network, QUARANTINE.name)
    staging.bind(spark, settings, attempt.attempt_id)
    if "seen_at" not in frame.columns:
        frame = frame.withColumn("seen_at", f.current_timestamp())
    span = staging.span(attempt.start, attempt.end)
    rows = staging.shape(frame, QUARANTINE).where(span).dropDuplicates(list(QUARANTINE.key)).persist()

    def write(published: str) -> None:
        known = rows_per_day(published, attempt.start, attempt.end)
        if not known:
            if not rows.isEmpty():
                staging.replace(rows, QUARANTINE, name, attempt.start, attempt.end)
            return
        both = _beside(rows, spark.read.table(name).where(span), QUARANTINE).persist()
        try:
            if not both.where(~_same(QUARANTINE)).isEmpty():
                merged = _with_first_clock(both, QUARANTINE)
                staging.replace(merged, QUARANTINE, name, attempt.start, attempt.end)
        finally:
            both.unpersist()

    try:
        location = commit_apart(settings, database, attempt, QUARANTINE.name, kind="quarantine", write=write)
    finally:
        rows.unpersist()
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


def _beside(rows: DataFrame, old: DataFrame, contract: Table) -> DataFrame:
    """Return each key once: the new row in struct ``new``, the known one in ``old``, null where absent."""
    from pyspark.sql import functions as f

    left = rows.select(f.struct(*contract.names).alias("new"))
    right = old.select(f.struct(*contract.names).alias("old"))
    return left.join(right, _same_key(contract), "full")


def _same_key(contract: Table) -> Column:
    from pyspark.sql import functions as f

    equal = [f.col(f"new.{name}").eqNullSafe(f.col(f"old.{name}")) for name in contract.key]
    return reduce(lambda left, right: left & right, equal)


def _same(contract: Table) -> Column:
    """Return the condition that both are there, and equal but for their clocks."""
    from pyspark.sql import functions as f

    names = [name for name in contract.names if name not in contract.first_value]
    equal = [f.col(f"new.{name}").eqNullSafe(f.col(f"old.{name}")) for name in names]
    there = f.col("new").isNotNull() & f.col("old").isNotNull()
    return reduce(lambda left, right: left & right, equal, there)


def _with_first_clock(both: DataFrame, contract: Table) -> DataFrame:
    """Return the new rows, their clock columns taken from the known row where there is one."""
    from pyspark.sql import functions as f

    def value(name: str) -> Column:
        new = f.col(f"new.{name}")
        kept = f.coalesce(f.col(f"old.{name}"), new) if name in contract.first_value else new
        return kept.alias(name)

    return both.where(f.col("new").isNotNull()).select(*[value(name) for name in contract.names])


def _record_quarantined(database: Database, attempt: AttemptRow, counted: dict[date, int]) -> None:
    with database.write() as connection:
        known = record.known_days(connection, attempt.network, attempt.start, attempt.end)
        for day in known | set(counted):
            record.set_day(connection, attempt.network, day, quarantined=counted.get(day, 0))
