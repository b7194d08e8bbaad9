"""Rows of some days of one table, read from its files in this process: no Spark."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from functools import cached_property

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile

from permalake.lake.catalog import open_table
from permalake.lake.counts import day_of, files_between, rows_per_day
from permalake.net import object_storage

_EARLIEST = date(1970, 1, 1)


class DayRows:
    """The rows of start..end in the table that one metadata file describes, but for some days.

    Metadata is read when it is first asked for, data files by :meth:`read` alone.
    """

    def __init__(self, location: str, start: date, end: date, without: Collection[date] = ()) -> None:
        self._location = location
        self._span = start, end
        self._without = frozenset(without)

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(file.record_count for file in self._files)

    @property
    def size(self) -> int:
        """The size of the data files in bytes."""
        return sum(file.file_size_in_bytes for file in self._files)

    def read(self) -> pa.Table:
        """Return the rows, all in memory. Columns that older files lack are null."""
        return self.scan().to_table()

    def scan(self) -> ds.Dataset:
        """Return the rows as a dataset, which reads what is asked of it; its columns have their field ids."""
        fields = schema_to_pyarrow(open_table(self._location).schema())
        schema = pa.schema([pa.field(f.name, f.type, metadata=f.metadata) for f in fields])
        return object_storage.parquet_files([file.file_path for file in self._files], schema)

    @cached_property
    def _files(self) -> list[DataFile]:
        files = files_between(self._location, *self._span)
        return [file for file in files if day_of(file) not in self._without]


def latest_day_before(location: str, day: date) -> date | None:
    """Return the latest day with rows before ``day``, from metadata, nearest days first."""
    until, reach = day - timedelta(days=1), timedelta(days=8)
    while until >= _EARLIEST:
        since = max(until - reach, _EARLIEST)
        if counts := rows_per_day(location, since, until):
            return max(counts)
        until, reach = since - timedelta(days=1), 4 * reach
    return None
