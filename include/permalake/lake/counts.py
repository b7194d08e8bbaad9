"""Rows per day, read off Iceberg's metadata: no data file is opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestFile
from pyiceberg.table import ManifestGroupPlanner
from pyiceberg.table import Table as IcebergTable
from pyiceberg.utils.concurrent import ExecutorFactory

from permalake.lake.catalog import UnreadableTableError, open_table

_EPOCH = date(1970, 1, 1)
_FEW = 256
"""From so many files on, a table's manifests are pruned for each question."""
_KEPT_FILES = 8
"""The list of files of a manifest is kept in memory if it has at most so many."""


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
    try:
        manifests = snapshot.manifests(table.io)
        if where is None:
            opened = [_Manifest(manifest, table.io) for manifest in manifests]
            listed = ExecutorFactory.get_or_create().map(_files_in, opened)
        else:
            # A scan would work out for each file what of the filter its rows have yet to meet.
            planner = ManifestGroupPlanner(table.metadata, table.io, where)
            listed = map(_data_files, planner.plan_manifest_entries(manifests))
        every = list(chain.from_iterable(listed))
    except Exception as error:
        raise UnreadableTableError(table.metadata_location, error, "a manifest") from error
    yield from every


def is_readable(location: str) -> bool:
    """Return whether the metadata file at a location and every manifest that it leads to can be read.

    They are read anew, none from memory.
    """
    try:
        list(files(open_table(location), days_between(date.min, date.max)))
    except UnreadableTableError:
        return False
    return True


@dataclass(frozen=True)
class _Manifest:
    file: ManifestFile
    io: FileIO = field(compare=False)

    def data_files(self) -> tuple[DataFile, ...]:
        return _data_files(self.file.fetch_manifest_entry(self.io))


def _files_in(manifest: _Manifest) -> tuple[DataFile, ...]:
    count = (manifest.file.added_files_count or 0) + (manifest.file.existing_files_count or 0)
    return _few_files_in(manifest) if count <= _KEPT_FILES else manifest.data_files()


# A manifest never changes, and each version of a table has nearly all manifests of the one before.
_few_files_in = lru_cache(maxsize=2048)(_Manifest.data_files)


def _data_files(entries: Iterable[ManifestEntry]) -> tuple[DataFile, ...]:
    return tuple(entry.data_file for entry in entries if entry.data_file.content == DataFileContent.DATA)


@lru_cache(maxsize=128)  # A metadata file never changes, and a run asks for the same days several times.
def files_between(location: str, start: date, end: date) -> tuple[DataFile, ...]:
    """Return the files of start..end of the table that the metadata file at ``location`` describes."""
    every = _files_if_few(location)
    if every is None:
        return tuple(files(open_table(location), days_between(start, end)))
    return tuple(file for file in every if start <= day_of(file) <= end)


@lru_cache(maxsize=64)
def _files_if_few(location: str) -> tuple[DataFile, ...] | None:
    """Return all files of a table; None for a large one, of which no day but the wanted ones is read.

    Whoever goes over days one by one, as a check of signed days does, reads a small table's manifests once.
    """
    table = open_table(location)
    snapshot = table.current_snapshot()
    summary = snapshot.summary if snapshot else None
    count = int(summary["total-data-files"] or _FEW) if summary else 0
    return tuple(files(table)) if count < _FEW else None


def rows_per_day(location: str, start: date, end: date) -> dict[date, int]:
    """Count rows by day within start..end, of the table that the metadata file at ``location`` describes."""
    counted: Counter[date] = Counter()
    for file in files_between(location, start, end):
        counted[day_of(file)] += file.record_count
    return dict(counted)
