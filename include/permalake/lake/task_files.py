"""Data files that tasks write themselves: rows go from Arrow into Parquet, past the JVM.

A task gives rows to a :class:`TaskFiles` and returns what it wrote as text, one :class:`WrittenFile` each.
The driver adds the files of the tasks that succeeded to the staged tables; nobody refers to those of a task
that failed, and maintenance removes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO, OutputFile, load_file_io
from pyiceberg.io.pyarrow import (
    ParquetFormatWriter,
    StatisticsCollector,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.typedef import Record

from permalake.arrays.order import sorted_rows
from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.catalog import open_catalog
from permalake.lake.counts import day_of, days_between, files
from permalake.lake.leases import format_range
from permalake.lake.record import AttemptRow
from permalake.lake.replay import Belongs, exchange
from permalake.lake.text_bounds import text_bounds, without_text_bounds

_AT_ONCE = 4
# Rows are held back until they make a row group of this size: PyIceberg takes rows as they come.
_GROUP_SIZE = "write.parquet.row-group-size-bytes"
_LARGEST_GROUP = 64 << 20
_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


@dataclass(frozen=True, slots=True)
class FileTarget:
    """A staged table, as far as a task needs it to write its files. It can be sent to a task.

    ``schema`` is the Iceberg schema as JSON; ``order`` the columns that sort a day's rows.
    """

    table: str
    location: str
    schema: str
    properties: Mapping[str, str]
    spec_id: int
    order: tuple[str, ...]

    @classmethod
    def of(cls, table: IcebergTable, name: str, order: tuple[str, ...]) -> Self:
        """Return the target that stands for an Iceberg table."""
        return cls(
            name,
            table.location(),
            table.schema().model_dump_json(),
            dict(table.properties),
            table.spec().spec_id,
            order,
        )

    @property
    def layout(self) -> _Layout:
        """The layout that all files of the table share."""
        properties = sorted(pair for pair in self.properties.items() if pair[0] != _GROUP_SIZE)
        return _layout(self.schema, tuple(properties))

    def shaped(self, rows: pa.Table) -> pa.Table:
        """Return rows with the table's columns and types."""
        arrow = self.layout.arrow
        return pa.table([_as(rows, field) for field in arrow], schema=arrow)

    def checked(self, rows: pa.Table) -> pa.Table:
        """Return rows with the table's columns and types, such as a file takes.

        Raises:
            pyarrow.ArrowInvalid: A value has no place in its column, or a required one is missing.
        """
        shaped = self.shaped(rows)
        shaped.validate(full=True)
        for field in shaped.schema:
            if not field.nullable and shaped[field.name].null_count:
                raise pa.ArrowInvalid(f"{self.table}: a value of {field.name} is missing")
        return shaped


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file with its day and the statistics that Iceberg keeps of it."""

    table: str
    day: date
    facts: Mapping[str, Any]

    def to_text(self) -> str:
        """Return the file as text that :meth:`from_text` reads."""
        return json.dumps({"table": self.table, "day": self.day.isoformat(), **self.facts})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the file that a text describes."""
        facts = json.loads(text)
        return cls(facts.pop("table"), date.fromisoformat(facts.pop("day")), facts)

    @property
    def data_file(self) -> DataFile:
        """The file as Iceberg's manifests list it."""
        facts = self.facts
        counts = {name: {int(at): count for at, count in facts[name].items()} for name in _COUNTS}
        bounds = {
            name: {int(at): bytes.fromhex(value) for at, value in facts[name].items()} for name in _BOUNDS
        }
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=facts["path"],
            file_format=FileFormat.PARQUET,
            partition=Record((self.day - date(1970, 1, 1)).days),
            file_size_in_bytes=facts["bytes"],
            record_count=facts["rows"],
            split_offsets=facts["split_offsets"],
            sort_order_id=None,
            spec_id=facts["spec_id"],
            equality_ids=None,
            key_metadata=None,
            **counts,  # type: ignore[arg-type]
            **bounds,  # type: ignore[arg-type]
        )


class TaskFiles:
    """The files that one task writes, one for each table and day.

    ``file_io``: properties of the access to object storage.
    """

    def __init__(self, targets: Iterable[FileTarget], file_io: Mapping[str, str]) -> None:
        self._targets = {target.table: target for target in targets}
        self._file_io = dict(file_io)
        self._ios: dict[str, FileIO] = {}
        self._open: dict[tuple[str, date], _OpenFile] = {}

    def add(self, table: str, rows: pa.Table) -> None:
        """Add rows with the columns of a table."""
        days = pc.unique(rows["date"]).to_pylist()
        for day in days:
            day_rows = rows if len(days) == 1 else rows.filter(pc.equal(rows["date"], day))
            key = (table, day)
            if key not in self._open:
                self._open[key] = _OpenFile(self._targets[table], day, self._io(table))
            self._open[key].add(day_rows)

    def _io(self, table: str) -> FileIO:
        if table not in self._ios:
            self._ios[table] = load_file_io(self._file_io, self._targets[table].location)
        return self._ios[table]

    def complete_before(self, day: date) -> list[WrittenFile]:
        """Complete the files of earlier days and return them."""
        return [self._open.pop(key).close() for key in sorted(self._open) if key[1] < day]

    def complete(self) -> list[WrittenFile]:
        """Complete all files and return them."""
        return self.complete_before(date.max)


def register(
    settings: Settings, attempt: AttemptRow, written: Iterable[WrittenFile], tables: Mapping[str, Belongs]
) -> None:
    """Replace days of an attempt in its staged tables by the written files: those that belong to each."""
    by_table: dict[str, dict[str, DataFile]] = {name: {} for name in tables}
    for file in written:
        if not attempt.start <= file.day <= attempt.end:
            raise PermalakeError(
                f"{file.table}: rows of {file.day} do not belong to "
                f"{format_range(attempt.start, attempt.end)}"
            )
        by_table[file.table][file.facts["path"]] = file.data_file

    def replace(name: str) -> None:
        span = attempt.start, attempt.end
        replace_days(settings, attempt, name, by_table[name], span=span, belongs=tables[name])

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(replace, tables))


def replace_days(
    settings: Settings,
    attempt: AttemptRow,
    name: str,
    written: dict[str, DataFile],
    *,
    span: tuple[date, date],
    belongs: Belongs,
) -> None:
    """Put files, by path, into a staged table in the place of those of the days of a span that belong."""
    catalog = open_catalog(settings, attempt.attempt_id)
    try:
        table = catalog.load_table((attempt.network, name))
        present = files(table, days_between(*span))
        exchange(table, {file.file_path: file for file in present if belongs(day_of(file))}, written)
    finally:
        catalog.close()


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout that all files of a table share."""

    schema: Schema
    arrow: pa.Schema
    properties: dict[str, str]
    statistics: dict[int, StatisticsCollector]
    counts: dict[int, StatisticsCollector]
    fields: dict[str, int]


@lru_cache(maxsize=256)
def _layout(schema: str, properties: tuple[tuple[str, str], ...]) -> _Layout:
    parsed, written_properties = Schema.model_validate_json(schema), dict(properties)
    statistics, fields = (
        compute_statistics_plan(parsed, written_properties),
        parquet_path_to_id_mapping(parsed),
    )
    arrow, counts = schema_to_pyarrow(parsed), without_text_bounds(statistics)
    return _Layout(parsed, arrow, written_properties, statistics, counts, fields)


class _ParquetWriter(ParquetFormatWriter):
    """PyIceberg's, which plans the statistics of each file anew, and whose bounds of text do not hold."""

    def __init__(self, output_file: OutputFile, layout: _Layout) -> None:
        super().__init__(output_file, layout.schema, layout.properties)
        self._layout = layout

    def facts(self) -> dict[str, Any]:
        """Complete the file; return its statistics in the words of Iceberg's manifests."""
        if self._writer is None or self._fos is None:
            raise ValueError("nothing was written")
        with self._fos:
            self._writer.close()
        metadata, layout = self._writer.writer.metadata, self._layout
        counted = data_file_statistics_from_parquet_metadata(metadata, layout.counts, layout.fields)
        facts = counted.to_serialized_dict()
        for field, (lower, upper) in text_bounds(metadata, layout.statistics, layout.fields).items():
            facts["lower_bounds"][field] = lower
            if upper is not None:
                facts["upper_bounds"][field] = upper
        return facts


class _OpenFile:
    def __init__(self, target: FileTarget, day: date, io: FileIO) -> None:
        self._target, self._day, self._io = target, day, io
        self._path = f"{target.location}/data/date={day.isoformat()}/{uuid4()}.parquet"
        self._writer = _ParquetWriter(io.new_output(self._path), target.layout)
        self._group = min(int(target.properties.get(_GROUP_SIZE, _LARGEST_GROUP)), _LARGEST_GROUP)
        self._held: list[pa.Table] = []
        self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        held = self._target.shaped(rows)
        self._held.append(held)
        self._bytes += held.nbytes
        if self._bytes >= self._group:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(sorted_rows(pa.concat_tables(self._held), self._target.order))
        self._held, self._bytes = [], 0

    def close(self) -> WrittenFile:
        if self._held:
            self._flush()
        statistics = self._writer.facts()
        facts = {
            "path": self._path,
            "bytes": len(self._io.new_input(self._path)),
            "rows": statistics["record_count"],
            "split_offsets": statistics["split_offsets"],
            "spec_id": self._target.spec_id,
            **{name: statistics[name] for name in _COUNTS},
            **{name: {at: value.hex() for at, value in statistics[name].items()} for name in _BOUNDS},
        }
        return WrittenFile(self._target.table, self._day, facts)


def _as(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    values = rows[field.name]
    return values if values.type == field.type else values.cast(field.type)
