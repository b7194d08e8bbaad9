"""Rows that are committed apart from a day's publication, seen by readers at once: the quarantine, so that
a day that stays unpublished shows why, and caches that only ever grow."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from sqlalchemy import Connection, insert, select, update

from permalake.config import Settings
from permalake.contracts import QUARANTINE, Table
from permalake.errors import PermalakeError
from permalake.lake import record, staging
from permalake.lake.catalog import locations, move_pointer
from permalake.lake.counts import rows_per_day
from permalake.lake.record import AttemptRow
from permalake.lake.state import (
    PUBLISHED,
    Database,
    attempt_tables,
    now,
    publication_tables,
    publications,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TRIES = 12


def quarantine(settings: Settings, database: Database, attempt: AttemptRow, frame: DataFrame) -> int:
    """The quarantine rows of the attempt's days become those of ``frame``."""
    spark = frame.sparkSession
    name = staging.full_name(attempt.attempt_id, attempt.network, QUARANTINE.name)
    staging.bind(spark, settings, attempt.attempt_id)
    if "seen_at" not in frame.columns:
        frame = frame.withColumn("seen_at", f.current_timestamp())
    rows = staging.shape(frame, QUARANTINE).where(staging.span(attempt.start, attempt.end))
    rows = rows.dropDuplicates(list(QUARANTINE.key)).persist()

    def write() -> None:
        old = spark.read.table(name).where(staging.span(attempt.start, attempt.end))
        merged = _with_first_clock(rows, old, QUARANTINE).persist()
        try:
            if not (merged.exceptAll(old).isEmpty() and old.exceptAll(merged).isEmpty()):
                staging.replace(merged, QUARANTINE, name, attempt.start, attempt.end)
        finally:
            merged.unpersist()

    try:
        location = _commit(database, attempt, QUARANTINE.name, "quarantine", write)
    finally:
        rows.unpersist()
    counted = rows_per_day(location, attempt.start, attempt.end)
    _record_quarantined(database, attempt, counted)
    return sum(counted.values())


def keep(
    settings: Settings, database: Database, attempt: AttemptRow, frame: DataFrame, contract: Table
) -> int:
    """Rows of ``frame`` whose key is new are added to the table."""
    spark = frame.sparkSession
    name = staging.full_name(attempt.attempt_id, attempt.network, contract.name)
    staging.bind(spark, settings, attempt.attempt_id)
    rows = staging.shape(frame, contract).dropDuplicates(list(contract.key)).persist()
    added = 0

    def write() -> None:
        nonlocal added
        old = spark.read.table(name).alias("old")
        new = rows.alias("new").join(old, _same_key(contract), "left_anti").persist()
        try:
            added = new.count()
            if added:
                staging.append(new, contract, name)
        finally:
            new.unpersist()

    try:
        _commit(database, attempt, contract.name, "cache", write)
    finally:
        rows.unpersist()
    return added


def _same_key(contract: Table) -> Column:
    return reduce(
        lambda left, right: left & right,
        [f.col(f"new.{name}").eqNullSafe(f.col(f"old.{name}")) for name in contract.key],
    )


def _with_first_clock(rows: DataFrame, old: DataFrame, contract: Table) -> DataFrame:
    """``rows``, the clock columns of known keys taken from ``old``."""
    joined = rows.alias("new").join(old.alias("old"), _same_key(contract), "left")
    clocks = contract.keeps_clock
    return joined.select(
        *[
            f.coalesce(f.col(f"old.{name}"), f.col(f"new.{name}")).alias(name)
            if name in clocks
            else f.col(f"new.{name}").alias(name)
            for name in contract.names
        ]
    )


def _commit(database: Database, attempt: AttemptRow, table: str, kind: str, write: Callable[[], None]) -> str:
    """Write on top of what is published now, and publish the result; again from the start when another
    process published that table meanwhile. Returns the table's metadata location."""
    for attempt_number in range(_TRIES):
        with database.write() as connection:
            published = locations(connection, PUBLISHED, attempt.network)[table]
            _rebase(connection, attempt, table, published)
        write()
        with database.write() as connection:
            written = locations(connection, attempt.attempt_id, attempt.network).get(table)
            if written is None:
                raise PermalakeError(f"{attempt.network}: the staging of run {attempt.run_id} was superseded")
            if written == published:
                return published
            if move_pointer(connection, PUBLISHED, attempt.network, table, published, written):
                _rebase(connection, attempt, table, written)
                record_publication(connection, attempt, kind, {table: written})
                return written
        time.sleep(random.uniform(0, 0.2 * 2 ** min(attempt_number, 5)))  # noqa: S311
    raise PermalakeError(f"{attempt.network}.{table}: others kept on writing; run it again")


def _rebase(connection: Connection, attempt: AttemptRow, table: str, location: str) -> None:
    """The staging's own pointer and its base follow what is published: no part of the later swap."""
    staged = locations(connection, attempt.attempt_id, attempt.network).get(table)
    if staged is not None and staged != location:
        move_pointer(connection, attempt.attempt_id, attempt.network, table, staged, location)
    connection.execute(
        update(attempt_tables)
        .where(attempt_tables.c.attempt_id == attempt.attempt_id, attempt_tables.c.table_name == table)
        .values(base_location=location, pinned_location=None)
    )


def record_publication(
    connection: Connection, attempt: AttemptRow, kind: str, moved: dict[str, str], replayed: bool = False
) -> tuple[int, str]:
    """Write down what was moved; returns the publication's id and time, which rise together."""
    last = connection.execute(
        select(publications.c.published_at).order_by(publications.c.published_at.desc()).limit(1)
    ).scalar()
    published_at = max(now(), last or "")
    inserted = connection.execute(
        insert(publications).values(
            kind=kind,
            network=attempt.network,
            start=attempt.start,
            end=attempt.end,
            attempt_id=attempt.attempt_id,
            run_id=attempt.run_id,
            fingerprint=attempt.fingerprint,
            replayed=int(replayed),
            published_at=published_at,
        )
    )
    (publication_id,) = inserted.inserted_primary_key or (0,)
    if moved:
        connection.execute(
            insert(publication_tables),
            [
                {
                    "publication_id": publication_id,
                    "network": attempt.network,
                    "table_name": name,
                    "metadata_location": location,
                }
                for name, location in sorted(moved.items())
            ],
        )
    return publication_id, published_at


def _record_quarantined(database: Database, attempt: AttemptRow, counted: dict[date, int]) -> None:
    with database.write() as connection:
        known = record.known_days(connection, attempt.network, attempt.start, attempt.end)
        for day in known | set(counted):
            record.set_day(connection, attempt.network, day, quarantined=counted.get(day, 0))
