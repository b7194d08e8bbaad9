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
_PIECE = 2**20
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
            while text.read(_PIECE):
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
    try:
        if part.path.endswith(".gz"):
            with gzip.open(part.path, "rb") as text:
                yield from _lines(text, None, longest)
        else:
            with Path(part.path).open("rb") as text:
                _seek(text, part.start)
                yield from _lines(text, part.end, longest)
    except _UNREADABLE as error:
        yield Damage(_told(error))


def _seek(text: BinaryIO, start: int) -> None:
    """Go to the first line that begins at ``start`` or later."""
    if start:
        text.seek(start - 1)
        while (piece := text.readline(_PIECE)) and not piece.endswith(b"\n"):
            pass


def _lines(text: BinaryIO | gzip.GzipFile, end: int | None, longest: int) -> Iterator[bytes | Damage]:
    while end is None or text.tell() < end:
        line = text.readline(longest + 1)
        if not line:
            return
        if len(line) > longest and not line.endswith(b"\n"):
            yield Damage(f"a line of more than {longest} bytes", line[:longest])
            while (piece := text.readline(_PIECE)) and not piece.endswith(b"\n"):
                pass
        elif whole := line.rstrip(b"\r\n"):
            yield whole
