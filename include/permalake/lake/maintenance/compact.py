"""Compaction: the many small files of a day become few full ones, row for row the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING

from pyiceberg.expressions import In
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable

from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.lake import staging
from permalake.lake.catalog import UnreadableTableError, copy_pointers, locations, open_table
from permalake.lake.counts import day_of
from permalake.lake.counts import files as live_files
from permalake.lake.database import Database
from permalake.lake.maintenance.commit import Work, change_table
from permalake.lake.replay import exchange
from permalake.lake.state import PUBLISHED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Files = dict[str, DataFile]
"""Data files by path."""


def fragmented_days(location: str, target: int) -> dict[date, Files]:
    """Return days in more than twice the files that they need at ``target`` bytes each, with their files."""
    by_day: dict[date, Files] = defaultdict(dict)
    for file in live_files(open_table(location)):
        by_day[day_of(file)][file.file_path] = file
    return {day: files for day, files in by_day.items() if len(files) > 2 * _ideal(files.values(), target)}


def fragmented_tables(
    database: Database, network: str, tables: Collection[str], target: int
) -> dict[str, dict[date, Files]]:
    """Return the network's tables that have fragmented days; a table that cannot be read is left out."""
    with database.read() as connection:
        published = locations(connection, PUBLISHED, network)
    by_table = {}
    for name in sorted(published.keys() & set(tables)):
        with suppress(UnreadableTableError):  # tidying names it
            if days := fragmented_days(published[name], target):
                by_table[name] = days
    return by_table


def _ideal(files: Iterable[DataFile], target: int) -> int:
    return max(1, -(-sum(file.file_size_in_bytes for file in files) // target))


def compact(spark: SparkSession, work: Work, contract: Table, target: int) -> dict[date, tuple[int, int]]:
    """Compact a table's fragmented days; return (files before, files after) of each day that was exchanged.

    The new files are written beside the old ones, unseen, and then exchanged for them. A day that was
    published again meanwhile keeps what was published.
    """
    table = contract.name
    with work.database.write() as connection:
        published = locations(connection, PUBLISHED, work.network)[table]
        copy_pointers(connection, work.catalog, work.network, {table: published})
    before = fragmented_days(published, target)
    if not before:
        return {}
    staging.bind(spark, work.settings, work.catalog)
    name = staging.full_name(work.catalog, work.network, table)
    small = [day for day, files in before.items() if _ideal(files.values(), target) == 1]
    if small:
        _rewrite(spark, name, contract, small, 1)
    for day in before.keys() - set(small):
        _rewrite(spark, name, contract, [day], _ideal(before[day].values(), target))
    with work.database.read() as connection:
        written = locations(connection, work.catalog, work.network)[table]
    after = _files_of(open_table(written), before)
    for day, files in before.items():
        if _rows(files) != _rows(after[day]):
            raise PermalakeError(f"{work.network}.{table} {day}: compaction changed the number of rows")
    exchanged: dict[date, tuple[int, int]] = {}

    def edit(current: IcebergTable) -> None:
        exchanged.clear()
        present = _files_of(current, before)
        same = [day for day, files in before.items() if present[day].keys() == files.keys()]
        if same:
            exchange(current, _joined(before, same), _joined(after, same))
        exchanged.update({day: (len(before[day]), len(after[day])) for day in same})

    change_table(work, table, edit)
    return exchanged


def _rewrite(spark: SparkSession, name: str, contract: Table, days: list[date], parts: int) -> None:
    from pyspark.sql import functions as f

    here = f.col("date").isin(days)
    order = [column for column in contract.order if column != "date"]
    rows = spark.read.table(name).where(here)
    spread = rows.repartition("date") if parts == 1 else _ranges(rows, parts, order)
    spread.sortWithinPartitions("date", *order).writeTo(name).overwrite(here)


def _ranges(rows: DataFrame, parts: int, order: list[str]) -> DataFrame:
    return rows.repartitionByRange(parts, *order) if order else rows.repartition(parts)


def _files_of(table: IcebergTable, days: Iterable[date]) -> dict[date, Files]:
    by_day: dict[date, Files] = {day: {} for day in days}
    if table.current_snapshot() is not None:
        on_these_days = In("date", {day.isoformat() for day in by_day})  # type: ignore[call-arg, arg-type]
        for task in table.scan(row_filter=on_these_days).plan_files():
            by_day[day_of(task.file)][task.file.file_path] = task.file
    return by_day


def _joined(files: dict[date, Files], days: Iterable[date]) -> Files:
    return {path: file for day in days for path, file in files[day].items()}


def _rows(files: Files) -> int:
    return sum(file.record_count for file in files.values())
