"""Text files as lines of bytes: cut into ranges for tasks, read within limits, damage told instead of raised.

Only files inside the source's folder are read, whatever links lie there. A line belongs to the range in which
it begins, so that ranges of one file share nothing and lack nothing.
"""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# A task reads about so much of a plain file; a gzip file cannot be cut.
_RANGE_BYTES = 32 * 2**20
# A milestone of Chronicle's logs holds all of its messages in one line.
LONGEST_LINE = 256 * 2**20
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
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield Damage(f"the gzip file is damaged: {' '.join(str(error).split())}")


def _seek(text: BinaryIO, start: int) -> None:
    """Go to the first line that begins at ``start`` or later."""
    if start:
        text.seek(start - 1)
        while (piece := text.readline(2**20)) and not piece.endswith(b"\n"):
            pass


def _lines(text: BinaryIO | gzip.GzipFile, end: int | None, longest: int) -> Iterator[bytes | Damage]:
    while end is None or text.tell() < end:
        line = text.readline(longest + 1)
        if not line:
            return
        if len(line) > longest and not line.endswith(b"\n"):
            yield Damage(f"a line of more than {longest} bytes", line[:longest])
            while (piece := text.readline(2**20)) and not piece.endswith(b"\n"):
                pass
        elif whole := line.rstrip(b"\r\n"):
            yield whole
