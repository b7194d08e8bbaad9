"""The ``archive_rest`` source: directories of REST bodies as JSON Lines, plain or gzip.

One directory holds ``milestones``, ``blocks`` (Chrysalis: ``messages``), ``utxo_changes`` and
``consumed_outputs`` (``created_outputs`` repeats what the blocks say and is not read). Any number of such
directories may lie under the configured path; only those that touch the wanted milestones are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.errors import PermalakeError
from permalake.iota.cone.source_records import LOOK_BACK, RECORD, MilestoneDay, Record
from permalake.iota.sources import archive_json as shapes
from permalake.iota.sources.archive_index import Span, spans
from permalake.iota.sources.milestone_days import days_of

_FILE = re.compile(r"(milestones|blocks|messages|utxo_changes|consumed_outputs)([-._].+)?\.jsonl(\.gz)?")
_ROLE = {"messages": "blocks"}


@dataclass(slots=True)
class Folder:
    """A directory of the archive: its files by role, and what its milestones span (None: unknown)."""

    path: Path
    files: dict[str, list[Path]] = field(default_factory=dict)
    span: Span | None = None

    def touches(self, first: int, last: int) -> bool:
        """Whether a milestone of ``first``..``last`` may lie here."""
        return self.span is None or (self.span.first <= last and self.span.last >= first)


class ArchiveRest:
    """An archive directory as the source of a network's milestones."""

    name = "archive_rest"

    def __init__(self, spark: SparkSession, path: Path, look_back: int = LOOK_BACK) -> None:
        self._spark, self._look_back = spark, look_back
        self._root = path
        self._folders = _folders(path)
        if not any("milestones" in folder.files for folder in self._folders):
            raise PermalakeError(f"{path}: no milestones.jsonl[.gz] there; set networks.NAME.path")
        known = spans(spark, [f for folder in self._folders for f in folder.files.get("milestones", ())])
        for folder in self._folders:
            own = [known[file] for file in folder.files.get("milestones", ()) if file in known]
            folder.span = reduce(Span.join, own) if own else None

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that the source holds; 0 when it holds none."""
        return min((folder.span.first for folder in self._folders if folder.span), default=0)

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """The dates of ``start``..``end`` that have milestones, in order."""
        files = [
            file
            for folder in self._folders
            if folder.span and folder.span.overlaps(start, end)
            for file in folder.files["milestones"]
        ]
        return days_of(shapes.milestone_times(self._spark, files), start, end) if files else []

    def records(self, days: Sequence[MilestoneDay]) -> DataFrame:
        """Records (:data:`RECORD`) of the days' milestones and of the milestones before them that their
        cones may refer to."""
        first, last = min(d.first for d in days) - self._look_back, max(d.last for d in days)
        folders = [folder for folder in self._folders if folder.touches(first, last)]
        frames = []
        for role, kind in _KINDS.items():
            files = [file for folder in folders for file in folder.files.get(role, ())]
            if files:
                frames.append(self._read(files, kind, min(d.first for d in days)))
        everything = reduce(DataFrame.unionByName, frames)
        return everything.where(F.col("milestone").between(first, last))

    def distrust(self, refused: Mapping[date, str], days: Sequence[MilestoneDay]) -> None:
        """Nothing is kept."""

    def _read(self, files: Iterable[Path], kind: Record, fallback: int) -> DataFrame:
        lines = shapes.read(self._spark, files, kind)
        sound = shapes.is_sound(kind)
        record = shapes.columns(kind)
        spoilt = shapes.malformed(fallback)

        def pick(name: str) -> Column:
            return F.when(sound, record[name]).otherwise(spoilt[name]).cast(RECORD[name].dataType)

        return lines.select(
            *(pick(name).alias(name) for name in RECORD.names if name != "origin"),
            _relative(self._root).alias("origin"),
        )


_KINDS = {
    "milestones": Record.MILESTONE,
    "blocks": Record.BLOCK,
    "consumed_outputs": Record.CONSUMED,
    "utxo_changes": Record.CHANGES,
}


def _folders(root: Path) -> list[Folder]:
    folders: dict[Path, Folder] = {}
    for file in sorted(root.rglob("*.jsonl*")):
        match = _FILE.fullmatch(file.name)
        if match:
            role = _ROLE.get(match[1], match[1])
            folder = folders.setdefault(file.parent, Folder(file.parent))
            folder.files.setdefault(role, []).append(file)
    return list(folders.values())


def _relative(root: Path) -> Column:
    prefix = root.resolve().as_uri().removeprefix("file://") + "/"
    return F.element_at(F.split("file", re.escape(prefix), 2), -1)
