"""Rows per day, read off Iceberg's metadata: no data file is opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import lru_cache

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable

from permalake.lake.catalog import UnreadableTableError, open_table

_EPOCH = date(1970, 1, 1)


def days_between(start: date, end: date) -> str:
    """Return the filter for the partitions of start..end (inclusive)."""
    return f"date >= '{start.isoformat()}' and date <= '{end.isoformat()}'"


def day_of(file: DataFile) -> date:
    """Return the day whose rows a data file holds."""
    value = file.partition[0]
    return value if isinstance(value, date) else _EPOCH + timedelta(days=value)


def files(table: IcebergTable, where: str | None = None) -> Iterator[DataFile]:
    """Yield the live data files, pruned by partition.

    Raises:
        UnreadableTableError: if a manifest is missing or damaged.
    """
    if table.current_snapshot() is None:
        return
    scan = table.scan(row_filter=where) if where else table.scan()
    try:
        tasks = list(scan.plan_files())
    except Exception as error:
        raise UnreadableTableError(table.metadata_location, error) from error
    for task in tasks:
        yield task.file


def rows_per_day(location: str, start: date, end: date) -> dict[date, int]:
    """Count rows by day within start..end, of the table that the metadata file at ``location`` describes."""
    return dict(_counted(location, start, end))


@lru_cache(maxsize=1024)  # A metadata file never changes, and a run counts the same tables several times.
def _counted(location: str, start: date, end: date) -> Mapping[date, int]:
    counted: Counter[date] = Counter()
    for file in files(open_table(location), days_between(start, end)):
        counted[day_of(file)] += file.record_count
    return counted
