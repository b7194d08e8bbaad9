"""Files that grow, or are added: what is new in them, in whole lines.

How far a file was read is noted by its inode, bytes and beginning, so that one that is cut, rewritten, or
replaced by another, is read from its beginning. A gzip file is read whole once it decompresses, and again
when it changes. Whoever reads must bear to read a line twice.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from permalake.pipeline.line_files import LineRange, damage

_LOG = logging.getLogger(__name__)
_BATCH_BYTES = 4 << 20
_CHUNK = 1 << 20
_BEGINNING = 4096

Marks = Mapping[str, list[int]]
"""The bytes read of each file, by its path below the folder: [inode, bytes, checksum of how it begins], of a
gzip file [inode, bytes, time]."""


class FileTail:
    """The files of a folder, or one file. ``files_of`` lists them."""

    def __init__(self, root: Path, files_of: Callable[[Path], list[Path]]) -> None:
        self._root = root
        self._files_of = files_of
        self._damaged: dict[str, list[int]] = {}

    def after(self, marks: Marks) -> tuple[list[LineRange], dict[str, list[int]]] | None:
        """Return ranges of new lines, some MiB at once, and how far the files then are read; None: no news.

        A line counts once it has its end.
        """
        ranges: list[LineRange] = []
        reached: dict[str, list[int]] = {}
        left = _BATCH_BYTES
        for file in self._files_of(self._root):
            name = file.name if file == self._root else str(file.relative_to(self._root))
            mark = marks.get(name)
            news = self._news(file, name, mark, left) if left > 0 else None
            if news is not None:
                part, mark = news
                left -= part.end - part.start
                ranges.append(part)
            if mark is not None:
                reached[name] = mark
        return (ranges, reached) if ranges else None

    def _news(
        self, file: Path, name: str, mark: list[int] | None, most: int
    ) -> tuple[LineRange, list[int]] | None:
        facts = file.stat()
        path = str(file.resolve())
        if file.name.endswith(".gz"):
            now = [facts.st_ino, facts.st_size, facts.st_mtime_ns]
            if now in (mark, self._damaged.get(name)):
                return None
            if reason := damage(file):
                self._damaged[name] = now
                _LOG.warning("%s is not read yet: %s", file, reason)
                return None
            return LineRange(path, 0, facts.st_size), now
        start = mark[1] if mark is not None and _goes_on(file, facts, mark) else 0
        end = _last_end(file, start, min(facts.st_size, start + most), facts.st_size)
        return (
            (LineRange(path, start, end), [facts.st_ino, end, _checksum(file, end)]) if end > start else None
        )


def _goes_on(file: Path, facts: os.stat_result, mark: list[int]) -> bool:
    """Return whether a file still begins with what was read of it."""
    inode, read, *checksum = mark
    if inode != facts.st_ino or read > facts.st_size:
        return False
    return read == facts.st_size or not checksum or checksum == [_checksum(file, read)]


def _checksum(file: Path, read: int) -> int:
    """Return the CRC-32 of the first bytes of what was read of a file."""
    with file.open("rb") as text:
        return zlib.crc32(text.read(min(read, _BEGINNING)))


def _last_end(file: Path, start: int, limit: int, size: int) -> int:
    """Return the end of the last whole line that begins at ``start`` or later and ends before ``limit``.

    If none does, that of the first one; ``start`` where no line has its end yet.
    """
    with file.open("rb") as text:
        at = limit
        while at > start:
            begin = max(start, at - _CHUNK)
            text.seek(begin)
            if (end := text.read(at - begin).rfind(b"\n")) >= 0:
                return begin + end + 1
            at = begin
        text.seek(limit)
        while limit < size and (chunk := text.read(_CHUNK)):
            if (end := chunk.find(b"\n")) >= 0:
                return limit + end + 1
            limit += len(chunk)
    return start
