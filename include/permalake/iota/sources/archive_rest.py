"""The ``archive_rest`` source: directories of REST bodies as JSON Lines, plain or gzip.

One directory holds ``milestones``, ``blocks`` (Chrysalis: ``messages``), ``utxo_changes`` and
``consumed_outputs`` (``created_outputs`` repeats what the blocks say and is not read). Any number of such
directories may lie under the configured path; only those that touch the wanted milestones are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from permalake.errors import PermalakeError
from permalake.iota.cone.packs import AS_RECORDS, Packing
from permalake.iota.cone.source_records import LOOK_BACK, RECORD, MilestoneDay, Record
from permalake.iota.sources.archive_columns import UnusualLinesError, archive_columns
from permalake.iota.sources.archive_index import file_spans, file_times, with_damage
from permalake.iota.sources.archive_lines import archive_rows, milestone_time, placed
from permalake.iota.sources.milestone_times import Span, days_of
from permalake.iota.sources.source_ends import ARCHIVE_FILE
from permalake.pipeline.line_files import Damage, inside, line_ranges, lines_of, read_pieces, readable
from permalake.pipeline.line_tasks import range_frame, ranges_in

_ROLE = {"messages": "blocks"}
_KINDS = {
    "milestones": Record.MILESTONE,
    "blocks": Record.BLOCK,
    "consumed_outputs": Record.CONSUMED,
    "utxo_changes": Record.CHANGES,
}
_ARROW = to_arrow_schema(RECORD)


@dataclass(slots=True)
class Folder:
    """A directory of the archive: its files by role, and what its milestones span (None: nothing)."""

    path: Path
    files: dict[str, list[Path]] = field(default_factory=dict)
    span: Span | None = None

    def touches(self, first: int, last: int) -> bool:
        """Return whether a milestone of ``first`` to ``last`` may lie here."""
        return self.span is None or (self.span.first <= last and self.span.last >= first)


class ArchiveRest:
    """An archive directory as the source of a network's milestones."""

    name = "archive_rest"

    def __init__(self, spark: SparkSession, path: Path, look_back: int = LOOK_BACK) -> None:
        self._spark, self._look_back = spark, look_back
        self._root = path.resolve()
        self._folders = _folders(path)
        if not any("milestones" in folder.files for folder in self._folders):
            raise PermalakeError(f"{path}: no milestones.jsonl[.gz] there; set networks.NAME.path")
        files = [file for folder in self._folders for file in folder.files.get("milestones", ())]
        by_file = file_spans(spark, files, milestone_time)
        for file, file_span in by_file.items():
            if file_span.damage and file_span.span is None:
                raise PermalakeError(f"{file}: {file_span.damage}; put a whole copy there, or take it away")
        self._file_spans = by_file.values()
        for folder in self._folders:
            spans = [by_file[file].span for file in folder.files.get("milestones", ())]
            measured = [span for span in spans if span]
            folder.span = reduce(Span.join, measured) if measured else None

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that the source holds; 0 when it holds none."""
        return min((folder.span.first for folder in self._folders if folder.span), default=0)

    @property
    def last_milestone(self) -> int:
        """Index of the last milestone that the source holds; 0 when it holds none."""
        return max((folder.span.last for folder in self._folders if folder.span), default=0)

    @property
    def last_date(self) -> date:
        """Date of the latest milestone that the source holds; the first of all dates when it holds none."""
        return max((folder.span.last_date for folder in self._folders if folder.span), default=date.min)

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """Return the dates of ``start`` to ``end`` that have milestones, in order."""
        files = [
            file
            for folder in self._folders
            if folder.span and folder.span.overlaps(start, end)
            for file in folder.files["milestones"]
        ]
        index, time = file_times(self._spark, files, milestone_time)
        return with_damage(days_of(index, time, start, end), start, end, self._file_spans)

    def records(self, days: Sequence[MilestoneDay], packing: Packing = AS_RECORDS) -> DataFrame:
        """Return the records of the days' milestones, and of those before them that their cones may reach."""
        begin, last = min(d.first for d in days), max(d.last for d in days)
        first = begin - self._look_back
        files = [
            (role, file)
            for folder in self._folders
            if folder.touches(first, last)
            for role in _KINDS
            for file in folder.files.get(role, ())
        ]
        parts = [(role, part) for role, file in files for part in line_ranges([file])]
        frame = range_frame(
            self._spark,
            [part for _, part in parts],
            kind=[int(_KINDS[role]) for role, _ in parts],
            origin=[readable(str(Path(part.path).relative_to(self._root))) for _, part in parts],
        )
        span = self.first_milestone, self.last_milestone
        return frame.mapInArrow(_task(begin, first, last, span, packing), packing.schema)

    def distrust(self, refused: Mapping[date, str], days: Sequence[MilestoneDay]) -> None:
        """Do nothing: the source keeps nothing."""


def _task(
    begin: int, first: int, last: int, span: tuple[int, int], packing: Packing
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, constants in ranges_in(batches):
            for piece in read_pieces(part):
                records = _records(piece, Record(constants["kind"]), begin, constants["origin"])
                records = placed(records, begin, *span)
                index = records["milestone"]
                yield records.filter(pc.and_(pc.greater_equal(index, first), pc.less_equal(index, last)))

    return lambda batches: packing(run(batches))


def _records(piece: bytes | Damage, kind: Record, begin: int, origin: str) -> pa.RecordBatch:
    lines: Sequence[bytes | Damage]
    if isinstance(piece, Damage):
        lines = [piece]
    else:
        with suppress(UnusualLinesError):
            return archive_columns(piece, kind, origin)
        lines = lines_of(piece)
        with suppress(UnusualLinesError):
            return archive_columns(b"\n".join(lines), kind, origin)
    rows = [row | {"origin": origin} for row in archive_rows(lines, kind, begin)]
    return pa.RecordBatch.from_pylist(rows, _ARROW)


def _folders(root: Path) -> list[Folder]:
    folders: dict[Path, Folder] = {}
    for file in inside(root, root.rglob("*.jsonl*")):
        match = ARCHIVE_FILE.fullmatch(file.name)
        if match:
            role = _ROLE.get(match[1], match[1])
            folder = folders.setdefault(file.parent, Folder(file.parent))
            folder.files.setdefault(role, []).append(file)
    return list(folders.values())
