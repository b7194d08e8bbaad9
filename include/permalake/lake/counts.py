"""Rows per day, read off Iceberg's metadata: no data file is opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table import ManifestGroupPlanner
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
    snapshot = table.current_snapshot()
    if snapshot is None:
        return
    # A scan would work out for each file what of the filter its rows have yet to meet.
    planner = ManifestGroupPlanner(table.metadata, table.io, where or AlwaysTrue())
    try:
        entries = list(chain.from_iterable(planner.plan_manifest_entries(snapshot.manifests(table.io))))
    except Exception as error:
        raise UnreadableTableError(table.metadata_location, error, "a manifest") from error
    for entry in entries:
        if entry.data_file.content == DataFileContent.DATA:
            yield entry.data_file


@lru_cache(maxsize=256)  # A metadata file never changes, and a run asks for the same days several times.
def files_between(location: str, start: date, end: date) -> tuple[DataFile, ...]:
    """Return the files of start..end of the table that the metadata file at ``location`` describes."""
    return tuple(files(open_table(location), days_between(start, end)))


def rows_per_day(location: str, start: date, end: date) -> dict[date, int]:
    """Count rows by day within start..end, of the table that the metadata file at ``location`` describes."""
    counted: Counter[date] = Counter()
    for file in files_between(location, start, end):
        counted[day_of(file)] += file.record_count
    return dict(counted)
