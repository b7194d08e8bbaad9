"""What each milestones file of an archive spans, remembered: a day's cost must not grow with history."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake import paths
from permalake.iota.sources.archive_json import milestone_times

# (file, milestone_index, timestamp [unix s]) of the milestones in some files.
Times = Callable[[SparkSession, Iterable[Path]], DataFrame]


@dataclass(frozen=True, slots=True)
class Span:
    """First and last milestone index and timestamp (unix s) of a file."""

    first: int
    last: int
    earliest: int
    latest: int

    def join(self, other: Span) -> Span:
        """The span of both."""
        return Span(
            min(self.first, other.first),
            max(self.last, other.last),
            min(self.earliest, other.earliest),
            max(self.latest, other.latest),
        )

    @property
    def first_date(self) -> date:
        """The date of its earliest milestone."""
        return _day(self.earliest)

    def overlaps(self, start: date, end: date) -> bool:
        """Whether a milestone of the dates ``start``..``end`` may lie in it."""
        return _day(self.earliest) <= end and _day(self.latest) >= start


def _day(timestamp: int) -> date:
    return datetime.fromtimestamp(timestamp, UTC).date()


def spans(spark: SparkSession, files: Sequence[Path], times: Times = milestone_times) -> dict[Path, Span]:
    """Spans by file; a file without milestones has none. Files that did not change since they were last
    looked at are not read."""
    store = _store(files)
    known = _load(store)
    state = {file: _state(file) for file in files}
    fresh = [file for file in files if str(file) not in known or known[str(file)]["state"] != state[file]]
    if fresh:
        found = _measure(spark, fresh, times)
        for file in fresh:
            span = found.get(file.resolve())
            known[str(file)] = {"state": state[file], "span": asdict(span) if span else None}
        _save(store, {str(file): known[str(file)] for file in files})
    return {file: Span(**known[str(file)]["span"]) for file in files if known[str(file)]["span"]}


def _measure(spark: SparkSession, files: Sequence[Path], times: Times) -> dict[Path, Span]:
    rows = (
        times(spark, files)
        .groupBy("file")
        .agg(
            F.min("milestone_index").alias("first"),
            F.max("milestone_index").alias("last"),
            F.min("timestamp").alias("earliest"),
            F.max("timestamp").alias("latest"),
        )
        .collect()
    )
    return {
        Path(unquote(urlparse(row["file"]).path)): Span(
            row["first"], row["last"], row["earliest"], row["latest"]
        )
        for row in rows
    }


def _state(file: Path) -> list[int]:
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _store(files: Sequence[Path]) -> Path:
    root = os.path.commonpath([str(file.parent.resolve()) for file in files])
    return paths.HOME / "sources" / f"{blake2b(root.encode(), digest_size=12).hexdigest()}.json"


def _load(store: Path) -> dict[str, dict]:
    try:
        content = json.loads(store.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return content if isinstance(content, dict) else {}


def _save(store: Path, content: dict[str, dict]) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=store.parent, delete=False, encoding="utf-8") as scratch:
        json.dump(content, scratch)
    Path(scratch.name).replace(store)
