"""The spans of milestones files, remembered, so that a day's cost does not grow with history."""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
from pyspark.sql import Row, SparkSession

from permalake import paths
from permalake.intervals import dates
from permalake.iota.cone.source_records import MilestoneDay
from permalake.iota.sources.milestone_times import I64, Span, span_of
from permalake.pipeline.line_files import LONGEST_LINE, Damage, LineRange, line_ranges, read_lines
from permalake.pipeline.line_tasks import range_frame, ranges_in

# (milestone index, time [unix s]) of a line; None when the line does not have both.
ReadTime = Callable[[bytes], tuple[int, int] | None]

_SPANS = "path binary, first long, last long, earliest long, latest long, damage string"
_TIMES = "milestone_index long, timestamp long"
_TIMES_ARROW = pa.schema([("milestone_index", pa.int64()), ("timestamp", pa.int64())])
_SPANS_ARROW = pa.schema(
    [
        ("path", pa.binary()),
        *((name, pa.int64()) for name in ("first", "last", "earliest", "latest")),
        ("damage", pa.string()),
    ]
)


class RememberedFile(TypedDict):
    """A file as it was measured: its size and time, its span (the fields of a :class:`Span`), its damage."""

    state: list[int]
    span: dict[str, int] | None
    damage: str | None


@dataclass(frozen=True, slots=True)
class FileTimes:
    """Milestone indexes and times (unix s) of a part of a file, and why not all of it can be read."""

    index: I64
    time: I64
    damage: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileSpan:
    """The span of a file (None: it has no milestone), and why it breaks off, if it does."""

    span: Span | None
    damage: str | None = None


def file_times(
    spark: SparkSession, files: Sequence[Path], read: ReadTime, longest: int = LONGEST_LINE
) -> tuple[I64, I64]:
    """Return indexes and times (unix s) of all milestones of some files."""
    if not files:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = range_frame(spark, line_ranges(files, longest)).mapInArrow(_times_task(read), _TIMES).toArrow()
    return rows.column("milestone_index").to_numpy(), rows.column("timestamp").to_numpy()


def with_damage(
    days: Iterable[MilestoneDay], start: date, end: date, files: Collection[FileSpan]
) -> list[MilestoneDay]:
    """Return the days of ``start`` to ``end``: those of which a damaged file may hold more have a fault.

    No day that such a file reaches is known to be whole, and none without milestones, from there to the day
    with which another file goes on, is known to have none.
    """
    by_date = {day.date: day for day in days}
    spans = [file.span for file in files if file.span]
    for file in files:
        span = file.span
        if span is None or file.damage is None:
            continue
        until = min((other.first_date for other in spans if other.first > span.last), default=end)
        for day in dates(max(start, span.first_date), min(end, max(until, span.last_date))):
            there = by_date.get(day, MilestoneDay(day, 0, -1))
            if day <= span.last_date or not there.has_milestones:
                milestone = there.last if there.has_milestones else span.last + 1
                fault = there.fault or f"milestone {milestone}: malformed: {file.damage}"
                by_date[day] = replace(there, fault=fault)
    return [by_date[day] for day in sorted(by_date)]


def file_spans(
    spark: SparkSession, files: Sequence[Path], read: ReadTime, longest: int = LONGEST_LINE
) -> dict[Path, FileSpan]:
    """Return what each file spans. Files that did not change since the last call are not read."""
    if not files:
        return {}
    store = _store(files)
    stored = _load(store)
    state = {file: _state(file) for file in files}
    fresh = [file for file in files if _state_in(stored, file) != state[file]]
    if fresh:
        measured = _measure(spark, fresh, read, longest)
        for file in fresh:
            file_span = measured.get(file.resolve(), FileSpan(None))
            span = asdict(file_span.span) if file_span.span else None
            stored[str(file)] = {"state": state[file], "span": span, "damage": file_span.damage}
        _save(store, {str(file): stored[str(file)] for file in files})
    return {file: _remembered(stored[str(file)]) for file in files}


def known_last(files: Sequence[Path]) -> dict[Path, int]:
    """Return the last milestone of files that :func:`file_spans` has read as they are now; -1 without any."""
    entries = _load(_store(files)) if files else {}
    return {
        file: int(entry["span"]["last"]) if entry["span"] else -1
        for file in files
        if (entry := entries.get(str(file))) and entry.get("state") == _state(file)
    }


def _remembered(entry: RememberedFile) -> FileSpan:
    return FileSpan(Span(**entry["span"]) if entry["span"] else None, entry.get("damage"))


def _measure(
    spark: SparkSession, files: Sequence[Path], read: ReadTime, longest: int
) -> dict[Path, FileSpan]:
    rows = range_frame(spark, line_ranges(files, longest)).mapInArrow(_spans_task(read), _SPANS).collect()
    by_path: dict[bytes, list[Row]] = defaultdict(list)
    for row in rows:
        by_path[bytes(row["path"])].append(row)
    return {Path(os.fsdecode(path)): _joined(ranges) for path, ranges in by_path.items()}


def _joined(ranges: Sequence[Row]) -> FileSpan:
    """Return what a file spans, from its ranges."""
    spans = [
        Span(row["first"], row["last"], row["earliest"], row["latest"])
        for row in ranges
        if row["first"] is not None
    ]
    damage = next((row["damage"] for row in ranges if row["damage"]), None)
    return FileSpan(reduce(Span.join, spans) if spans else None, damage)


def _spans_task(read: ReadTime) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, _ in ranges_in(batches):
            times = times_of(part, read)
            span = span_of(times.index, times.time)
            row = (asdict(span) if span else {}) | {
                "path": os.fsencode(part.path),
                "damage": next(iter(times.damage), None),
            }
            yield pa.RecordBatch.from_pylist([row], _SPANS_ARROW)

    return run


def _times_task(read: ReadTime) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, _ in ranges_in(batches):
            times = times_of(part, read)
            yield pa.RecordBatch.from_arrays([times.index, times.time], schema=_TIMES_ARROW)

    return run


def times_of(part: LineRange, read: ReadTime) -> FileTimes:
    """Return the times of the milestones of a range."""
    times, damage = [], []
    for line in read_lines(part):
        if isinstance(line, Damage):
            damage.append(f"{part.name}: {line.reason}")
        elif time := read(line):
            times.append(time)
    pairs = np.array(times, np.int64).reshape(-1, 2)
    return FileTimes(pairs[:, 0], pairs[:, 1], tuple(damage))


def _state_in(stored: Mapping[str, RememberedFile], file: Path) -> list[int] | None:
    entry = stored.get(str(file))
    return entry.get("state") if entry else None


def _state(file: Path) -> list[int]:
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _store(files: Sequence[Path]) -> Path:
    root = os.path.commonpath([str(file.parent.resolve()) for file in files])
    return paths.HOME / "sources" / f"{blake2b(os.fsencode(root), digest_size=12).hexdigest()}.json"


def _load(store: Path) -> dict[str, RememberedFile]:
    try:
        content = json.loads(store.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _save(store: Path, content: dict[str, RememberedFile]) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=store.parent, delete=False, encoding="utf-8") as scratch:
        json.dump(content, scratch)
    Path(scratch.name).replace(store)
