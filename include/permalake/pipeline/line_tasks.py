"""Spark's tasks that read lines of files, each about as many bytes as the others."""

from __future__ import annotations

import csv
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.errors import ConfigError
from permalake.pipeline.line_files import Damage, LineRange, line_ranges, read_lines, whole_files
from permalake.spark.frames import of_rows

LONGEST_DOCUMENT = 4 * 2**20
"""A longer line of a document of Wormhole's is refused (bytes): guardians pass on at most 1 MiB."""
_TASKS_PER_CORE = 4
_TINY_TASK, _LARGE_TASK = 128 << 10, 64 << 20  # bytes of files, compressed ones as they are
_LOG = logging.getLogger(__name__)
_BATCH_ROWS, _BATCH_BYTES = 10_000, 4 << 20
_LINES = "line binary, file string, fault string"
_LINES_ARROW = pa.schema([("line", pa.binary()), ("file", pa.string()), ("fault", pa.string())])


def range_frame(spark: SparkSession, ranges: Sequence[LineRange], **columns: Sequence[Any]) -> DataFrame:
    """Return a frame with a row (path, start, end and the given columns) for every range.

    Its tasks have about the same number of bytes to read: small files share one.
    """
    tasks = tasks_of([part.end - part.start for part in ranges], spark.sparkContext.defaultParallelism)
    rows = [
        {
            **asdict(part),
            "path": os.fsencode(part.path),
            **{name: values[i] for name, values in columns.items()},
            "task": tasks[i],
        }
        for i, part in enumerate(ranges)
    ]
    parts = spark.createDataFrame(pa.Table.from_pylist(rows))
    return parts.repartitionById(max(tasks) + 1, F.col("task").cast("int"))


def tasks_of(sizes: Sequence[int], cores: int) -> list[int]:
    """Return the number of the task that reads each range, by the ranges' sizes in bytes.

    There are several tasks for a core, more where they would be large, fewer where they would be tiny.
    """
    total = sum(sizes)
    enough = max(_TASKS_PER_CORE * cores, total // _LARGE_TASK)
    number = max(1, min(len(sizes), enough, total // _TINY_TASK))
    loads = [(0, task) for task in range(number)]
    tasks = [0] * len(sizes)
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):  # the largest first, each to the least busy
        load, tasks[i] = heappop(loads)
        heappush(loads, (load + sizes[i], tasks[i]))
    return tasks


def ranges_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[LineRange, dict[str, Any]]]:
    """Yield the ranges of a task's batches, each with its row."""
    for batch in batches:
        for row in batch.to_pylist():
            yield LineRange(os.fsdecode(row["path"]), row["start"], row["end"], row["longest"]), row


def document_lines(spark: SparkSession, files: Sequence[Path | str | LineRange]) -> DataFrame:
    """Return the lines of files of documents, or of ranges of them: (value, file [name], fault [null: none]).

    ``value`` is the line's own bytes, as text that may be no UTF-8; empty lines are left out. A line that is
    too long has its head for a value, and a fault.
    """
    if not files:
        return of_rows(spark, [], "value string, file string, fault string")
    frame = range_frame(spark, line_ranges(files, LONGEST_DOCUMENT)).mapInArrow(_lines, _LINES)
    return frame.select(F.col("line").cast("string").alias("value"), "file", "fault")


def json_documents(spark: SparkSession, files: Sequence[Path | str], schema: str) -> DataFrame:
    """Return the documents of JSON Lines: the fields of a schema, null where a line has none, and ``file``.

    Lines that are too long are left out.
    """
    return documents_in(document_lines(spark, files), schema)


def documents_in(lines: DataFrame, schema: str) -> DataFrame:
    """Return the documents of lines (of :func:`document_lines`), as :func:`json_documents` does."""
    lines = lines.where("fault IS NULL")
    return lines.select(F.from_json("value", schema).alias("document"), "file").select("document.*", "file")


def csv_parts(files: Sequence[Path], names: Sequence[str], key: str) -> list[LineRange]:
    """Return CSV files as what :func:`csv_batches` reads.

    Raises:
        ConfigError: A file's header lacks a column; the message names the setting ``key``.
    """
    parts = whole_files(files, LONGEST_DOCUMENT)
    for part in parts:
        header = next(_csv_rows(part), [])
        if lacking := [name for name in names if name not in header]:
            raise ConfigError(f"{key}: {part.name} lacks the column {lacking[0]}")
    return parts


def csv_batches(part: LineRange, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield columns of a CSV file as text, null where a row has none, without lines that are too long."""
    rows = _csv_rows(part)
    header = next(rows, [])
    documents = (dict(zip(header, row, strict=False)) for row in rows)
    while some := list(islice(documents, _BATCH_ROWS)):
        columns = [[document.get(name) or None for document in some] for name in schema.names]
        arrays = [pa.array(values, pa.string()) for values in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _csv_rows(part: LineRange) -> Iterator[list[str]]:
    for line in read_lines(part):
        if not isinstance(line, Damage):
            with suppress(csv.Error):  # a field of more than 128 KiB
                # One by one: a quote that is never closed takes no other line with it.
                yield next(csv.reader([line.decode(errors="replace")]), [])


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for part, _ in ranges_in(batches):
        for lines in _batches(read_lines(part)):
            damaged = [line if isinstance(line, Damage) else None for line in lines]
            columns = [
                pa.array([line.raw if isinstance(line, Damage) else line for line in lines], pa.binary()),
                pa.repeat(part.name, len(lines)),
                pa.array([line and line.reason for line in damaged], pa.string()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_LINES_ARROW)


def _batches(lines: Iterable[bytes | Damage]) -> Iterator[list[bytes | Damage]]:
    """Yield lines that are not blank, some megabytes at once."""
    held: list[bytes | Damage] = []
    size = 0
    for line in lines:
        if isinstance(line, Damage):
            _LOG.warning("%s", line.reason)
        elif not line.strip(b" "):
            continue
        held.append(line)
        size += len(line.raw if isinstance(line, Damage) else line)
        if size >= _BATCH_BYTES or len(held) >= _BATCH_ROWS:
            yield held
            held, size = [], 0
    if held:
        yield held
