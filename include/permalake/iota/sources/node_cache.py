"""Records fetched from a node, kept on disk: Parquet files per stretch of milestones.

A stretch is ``STRETCH`` milestones, aligned. While one is fetched, its records are put down in small pieces;
at its end they become one file, named after the milestones that it holds complete. Every file is renamed into
place, so a killed run leaves whole files only; what it had put down is not fetched again.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from permalake.iota.codec.milestones import payload_time
from permalake.iota.cone.source_records import RECORD, Record

STRETCH = 32
# A row that is no record: a block that the stretch's blocks refer to and an earlier milestone references
# (``milestone``; 0: before the node's beginning). It keeps a second walk from asking again.
REFERENCE = -1

_WHOLE = re.compile(r"whole-(\d+)-(\d+)-(\d+)\.parquet")
_PIECE = re.compile(r"piece-[0-9a-f]{32}\.parquet")
_READERS_ARE_GONE = 3_600.0

_SCHEMA = to_arrow_schema(RECORD)


class NodeRecord(TypedDict):
    """A record of a source (:data:`~permalake.iota.cone.source_records.RECORD`) as a row."""

    kind: int
    milestone: int
    id: bytes | None
    raw: bytes | None
    link: bytes | None
    state: int | None
    conflict: int | None
    number: int | None
    origin: str


@dataclass(frozen=True, slots=True, order=True)
class Whole:
    """A file of a stretch, and which milestones it holds complete (inclusive)."""

    written: int
    first: int
    last: int
    path: Path


class NodeCache:
    """The landed records of a network's node below ``root``."""

    def __init__(self, root: Path):
        self.root = root

    def _folder(self, stretch: int) -> Path:
        """Return the file of a stretch's records."""
        return self.root / f"{stretch:08d}"

    def whole(self, stretch: int, *, to_read: bool = False) -> Whole | None:
        """Return the newest whole file of a stretch, which counts as needed now if it is ``to_read``."""
        if to_read:
            with suppress(FileNotFoundError):
                os.utime(self._folder(stretch))
        return max(self._wholes(stretch), default=None)

    def holds(self, milestone: int) -> Whole | None:
        """Return the whole file with that milestone, if it is landed."""
        stretch = self.whole(milestone // STRETCH)
        return stretch if stretch and stretch.first <= milestone <= stretch.last else None

    def stretches(self) -> list[int]:
        """Stretches of which something is landed, in order."""
        return sorted(int(folder.name) for folder in self.root.glob("[0-9]" * 8))

    def read(self, stretch: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """All that is landed of a stretch; records may come twice. Unreadable files are passed over."""
        whole = self.whole(stretch)
        files = [whole.path] if whole else []
        files += [file for file in self._files(stretch) if _PIECE.fullmatch(file.name)]
        for file in files:
            try:
                yield pq.read_table(file, columns=columns and list(columns), memory_map=False)
            except (OSError, pa.ArrowInvalid):
                continue

    def newest_milestone(self, first: int, last: int) -> tuple[int, bytes] | None:
        """Index and payload of the newest landed milestone of ``first``..``last``."""
        for stretch in reversed(self.stretches()):
            if not first // STRETCH <= stretch <= last // STRETCH:
                continue
            within = {index: raw for index, raw in self._payloads(stretch).items() if first <= index <= last}
            if within:
                return max(within.items())
        return None

    def time_of(self, milestone: int) -> int | None:
        """Time of a landed milestone (unix s)."""
        raw = self._payloads(milestone // STRETCH).get(milestone) if self.holds(milestone) else None
        return payload_time(raw) if raw else None

    def _payloads(self, stretch: int) -> dict[int, bytes]:
        payloads: dict[int, bytes] = {}
        for table in self.read(stretch, ("kind", "milestone", "raw")):
            rows = table.filter(pc.equal(table.column("kind"), int(Record.MILESTONE)))
            payloads |= dict(
                zip(rows.column("milestone").to_pylist(), rows.column("raw").to_pylist(), strict=True)
            )
        return payloads

    def add_piece(self, stretch: int, rows: Iterable[NodeRecord]) -> None:
        """Land some records of a stretch."""
        self._write(stretch, f"piece-{uuid4().hex}.parquet", rows)

    def add_whole(self, stretch: int, first: int, last: int, rows: Iterable[NodeRecord]) -> Whole:
        """Land all records of a stretch, of which ``first``..``last`` are complete.

        Pieces and outdated files go.
        """
        written = time.time_ns()
        path = self._write(stretch, f"whole-{first}-{last}-{written}.parquet", rows)
        for file in self._files(stretch):
            match = _WHOLE.fullmatch(file.name)
            # Another run may be reading what was the newest file a moment ago.
            outdated = match and written - int(match[3]) > _READERS_ARE_GONE * 1e9
            if outdated or _PIECE.fullmatch(file.name):
                file.unlink(missing_ok=True)
        return Whole(written, first, last, path)

    def forget(self, first: int, last: int) -> None:
        """Drop the stretches that touch milestones ``first``..``last``."""
        for stretch in self.stretches():
            if first // STRETCH <= stretch <= last // STRETCH:
                shutil.rmtree(self._folder(stretch), ignore_errors=True)

    def forget_all(self) -> None:
        """Drop everything."""
        shutil.rmtree(self.root, ignore_errors=True)

    def prune(self, first: int, last: int, keep_seconds: float) -> None:
        """Drop old stretches that hold nothing of milestones ``first``..``last``.

        Old ones were last written or needed longer than ``keep_seconds`` ago.
        """
        oldest = time.time() - keep_seconds
        for stretch in self.stretches():
            folder = self._folder(stretch)
            is_needed = first // STRETCH <= stretch <= last // STRETCH
            if not is_needed and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)

    def _wholes(self, stretch: int) -> Iterator[Whole]:
        for file in self._files(stretch):
            if match := _WHOLE.fullmatch(file.name):
                yield Whole(int(match[3]), int(match[1]), int(match[2]), file)

    def _files(self, stretch: int) -> list[Path]:
        folder = self._folder(stretch)
        return list(folder.iterdir()) if folder.is_dir() else []

    def _write(self, stretch: int, name: str, rows: Iterable[NodeRecord]) -> Path:
        folder = self._folder(stretch)
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f"{uuid4().hex}.scratch"
        pq.write_table(pa.Table.from_pylist(list(rows), _SCHEMA), scratch, compression="zstd")
        return scratch.replace(folder / name)
