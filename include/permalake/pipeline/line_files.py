"""Files of a source: which are read, and their lines, cut into ranges for tasks, within limits.

Only files inside the source's folder are read, whatever links lie there. A line belongs to the range in which
it begins, so that ranges of one file share nothing and lack nothing.
"""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from permalake.errors import InvalidInputError

# A task reads about so much of a plain file; a gzip file cannot be cut.
_RANGE_BYTES = 32 * 2**20
# A milestone of Chronicle's logs holds all of its messages in one line.
LONGEST_LINE = 256 * 2**20
_CHUNK, _PIECE = 2**16, 4 * 2**20
_UNREADABLE = (EOFError, zlib.error, gzip.BadGzipFile)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LineRange:
    """The lines of a file that begin at byte ``start`` or later and before ``end``."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a file, or a line of it, cannot be read on; ``raw`` is what was read of the line."""

    reason: str
    raw: bytes = b""


def inside(root: Path, files: Iterable[Path]) -> list[Path]:
    """Return the files, sorted, that lie below ``root`` once links are followed; log and drop the others."""
    real = root.resolve()
    kept = []
    for file in sorted(files):
        target = file.resolve()
        if target.is_relative_to(real) and target.is_file():
            kept.append(file)
        else:
            _LOG.warning("%s is not read: it is a link that leads out of %s, or to no file", file, root)
    return kept


def files_below(root: Path, endings: tuple[str, ...]) -> list[Path]:
    """Return a source's files by the endings of their names: those below a folder, or the one file.

    Links that lead out of the folder are left out, and so is what begins with ``_`` or ``.``, as Spark does.
    """
    if root.is_file():
        return [root]
    found = (file for file in root.rglob("*") if file.name.endswith(endings))
    shown = (file for file in found if not _is_hidden(file.relative_to(root)))
    return inside(root, shown)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def spark_paths(files: Iterable[Path]) -> list[str]:
    """Return paths as Spark's readers take them, which expand patterns in names."""
    return [re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file)) for file in files]


def refuse_damaged(files: Iterable[Path], key: str) -> None:
    """Raise :class:`InvalidInputError` if a gzip file breaks off or does not decompress; name ``key``."""
    for file in files:
        if file.suffix == ".gz" and (reason := _damage(file)):
            raise InvalidInputError(f"{key}: {file}: {reason}; put a whole copy there, or take it away")


def _damage(file: Path) -> str | None:
    try:
        with gzip.open(file, "rb") as text:
            while text.read(_CHUNK):
                pass
    except _UNREADABLE as error:
        return _told(error)
    return None


def _told(error: Exception) -> str:
    return f"the gzip file is damaged: {' '.join(str(error).split())}"


def line_ranges(files: Iterable[Path]) -> list[LineRange]:
    """Return the ranges that cover the files."""
    ranges = []
    for file in files:
        path = file.resolve()
        size = path.stat().st_size
        step = max(size, 1) if path.suffix == ".gz" else _RANGE_BYTES
        ranges += [LineRange(str(path), at, min(at + step, size)) for at in range(0, max(size, 1), step)]
    return ranges


def read_lines(part: LineRange, longest: int = LONGEST_LINE) -> Iterator[bytes | Damage]:
    """Yield the lines of a range without their ends; empty ones are left out.

    A line beyond ``longest`` bytes, and a gzip file that breaks off or does not decompress, come as
    :class:`Damage`.
    """
    for piece in read_pieces(part, longest):
        if isinstance(piece, Damage):
            yield piece
        else:
            yield from lines_of(piece)


def lines_of(piece: bytes) -> list[bytes]:
    """Return the lines of a piece without their ends; empty ones are left out."""
    return [line for ended in piece.split(b"\n") if (line := ended.rstrip(b"\r"))]


def read_pieces(part: LineRange, longest: int = LONGEST_LINE) -> Iterator[bytes | Damage]:
    """Yield the lines of a range, some megabytes of whole lines at once, as they lie in the file.

    Damage comes as :func:`read_lines` tells.
    """
    size = min(_CHUNK, longest)
    with gzip.open(part.path, "rb") if part.path.endswith(".gz") else Path(part.path).open("rb") as text:
        chunks = _unpacked(text, size) if isinstance(text, gzip.GzipFile) else _cut(text, part, size)
        yield from filter(None, _pieces(chunks, longest))


def _unpacked(text: gzip.GzipFile, size: int) -> Iterator[bytes]:
    """Yield what decompresses at once, so that damage takes nothing with it that came before."""
    while chunk := text.read1(size):
        yield chunk


def _seek(text: BinaryIO, start: int) -> None:
    """Go to the first line that begins at ``start`` or later."""
    if start:
        text.seek(start - 1)
        while (chunk := text.readline(_CHUNK)) and not chunk.endswith(b"\n"):
            pass


def _cut(text: BinaryIO, part: LineRange, size: int) -> Iterator[bytes]:
    """Yield the lines that begin in a range; the last one goes on behind it."""
    _seek(text, part.start)
    chunk = b"\n"
    while (left := part.end - text.tell()) > 0 and (chunk := text.read(min(size, left))):
        yield chunk
    while chunk and not chunk.endswith(b"\n") and (chunk := text.readline(size)):
        yield chunk


def _pieces(chunks: Iterator[bytes], longest: int) -> Iterator[bytes | Damage]:
    """Cut chunks of at most ``longest`` bytes into pieces of whole lines; pieces may be empty."""
    held, skips = _HeldLines(), False
    try:
        for chunk in chunks:
            at = chunk.find(b"\n")
            too_long = held.line_size + (len(chunk) if at < 0 else at) > longest
            if too_long and not skips:
                yield held.whole()
                yield Damage(f"a line of more than {longest} bytes", (held.line() + chunk)[:longest])
            if not (too_long or skips):
                held.add(chunk)
            elif at >= 0:
                held.add(chunk[at + 1 :])
            skips = (too_long or skips) and at < 0
            if held.size >= _PIECE:
                yield held.whole()
    except _UNREADABLE as error:
        yield held.whole()
        yield Damage(_told(error))
    else:
        yield held.whole() + held.line()


class _HeldLines:
    """What was read and not given on: whole lines, and the beginning of the next one."""

    def __init__(self) -> None:
        self._whole: list[bytes] = []
        self._line: list[bytes] = []
        self.size = self.line_size = 0

    def add(self, chunk: bytes) -> None:
        if end := chunk.rfind(b"\n") + 1:
            self._whole += [*self._line, chunk[:end]]
            self.size += self.line_size + end
            self._line, self.line_size = [], 0
        self._line.append(chunk[end:])
        self.line_size += len(chunk) - end

    def whole(self) -> bytes:
        """Return the whole lines and hold them no longer."""
        text = b"".join(self._whole)
        self._whole, self.size = [], 0
        return text

    def line(self) -> bytes:
        """Return the beginning of the next line and hold it no longer."""
        text = b"".join(self._line)
        self._line, self.line_size = [], 0
        return text
