"""Files of a source: which are read, and their lines, cut into ranges for tasks, within limits.

No source is read otherwise: a line that is too long never lies in memory whole, and no name of a file is
taken for a pattern or an address.

Only files inside the source's folder are read, whatever links lie there. A line belongs to the range in which
it begins, so that ranges of one file share nothing and lack nothing.
"""

from __future__ import annotations

import gzip
import logging
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, cast

from permalake.contracts.quarantine import RAW_LIMIT, whole_in_words
from permalake.errors import InvalidInputError
from permalake.net.object_storage import filesystem, inner_path, is_object_store

# A task reads about so much of a plain file; a gzip file cannot be cut.
_RANGE_BYTES = 32 * 2**20
LONGEST_LINE = 64 * 2**20
"""A longer line is refused, unless a source has a limit of its own (bytes)."""
TOO_LONG = "a line of more than"
"""Words with which the damage of a line that is too long begins."""
_CHUNK, _PIECE = 2**16, 4 * 2**20
_UNREADABLE = (EOFError, zlib.error, gzip.BadGzipFile)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LineRange:
    """The lines of a file that begin at byte ``start`` or later and before ``end``."""

    path: str
    start: int
    end: int
    longest: int = LONGEST_LINE
    """Longer lines are damage (bytes)."""

    @property
    def name(self) -> str:
        """The file's name, as text."""
        return readable(self.path.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a file, or a line of it, cannot be read on; ``raw`` is the head of the line."""

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
    below = (file for file in root.rglob("*") if file.name.endswith(endings))
    shown = (file for file in below if not _is_hidden(file.relative_to(root)))
    return inside(root, shown)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def readable(name: str) -> str:
    """Return a name of a file as text: bytes that are no UTF-8 are escaped."""
    return os.fsencode(name).decode(errors="backslashreplace")


def refuse_damaged(files: Iterable[Path], key: str) -> None:
    """Raise :class:`InvalidInputError` if a gzip file breaks off or does not decompress; name ``key``."""
    for file in files:
        if file.suffix == ".gz" and (reason := damage(file)):
            raise InvalidInputError(f"{key}: {file}: {reason}; put a whole copy there, or take it away")


def damage(file: Path) -> str | None:
    """Return why a gzip file does not decompress whole; None if it does."""
    try:
        with gzip.open(file, "rb") as text:
            while text.read(_CHUNK):
                pass
    except _UNREADABLE as error:
        return _damage_text(error)
    return None


def _damage_text(error: Exception) -> str:
    return f"the gzip file is damaged: {' '.join(str(error).split())}"


def line_ranges(files: Iterable[Path | str | LineRange], longest: int = LONGEST_LINE) -> list[LineRange]:
    """Return the ranges that cover the files: paths, or locations in object storage; ranges are kept."""
    ranges = []
    for file in files:
        if isinstance(file, LineRange):
            ranges.append(replace(file, longest=longest))
            continue
        path, size = _sized(file)
        step = max(size, 1) if path.endswith(".gz") else _RANGE_BYTES
        ranges += [LineRange(path, at, min(at + step, size), longest) for at in range(0, max(size, 1), step)]
    return ranges


def whole_files(files: Iterable[Path], longest: int = LONGEST_LINE) -> list[LineRange]:
    """Return a range for each file, however large it is."""
    sized = [_sized(file) for file in files]
    return [LineRange(path, 0, size, longest) for path, size in sized]


def _sized(file: Path | str) -> tuple[str, int]:
    if isinstance(file, str) and is_object_store(file):
        info = filesystem(file).get_file_info(inner_path(file))
        return file, int(info.size)
    path = Path(file).resolve()
    return str(path), path.stat().st_size


def read_lines(part: LineRange) -> Iterator[bytes | Damage]:
    """Yield the lines of a range without their ends; empty ones are left out.

    A line beyond the range's limit, and a gzip file that breaks off or does not decompress, come as
    :class:`Damage`.
    """
    for piece in read_pieces(part):
        if isinstance(piece, Damage):
            yield piece
        else:
            yield from lines_of(piece)


def lines_of(piece: bytes) -> list[bytes]:
    """Return the lines of a piece without their ends; empty ones are left out."""
    return [line for ended in piece.split(b"\n") if (line := ended.rstrip(b"\r"))]


def read_pieces(part: LineRange) -> Iterator[bytes | Damage]:
    """Yield the lines of a range, some megabytes of whole lines at once, as they lie in the file.

    Damage comes as :func:`read_lines` describes. A byte order mark is left out.
    """
    size = min(_CHUNK, part.longest)
    with _opened(part.path) as file:
        if part.path.endswith(".gz"):
            with gzip.GzipFile(fileobj=file) as text:
                yield from filter(None, _pieces(_unmarked(_unpacked(text, size)), part.longest))
        else:
            chunks = _cut(file, part, size)
            yield from filter(None, _pieces(chunks if part.start else _unmarked(chunks), part.longest))


def _opened(path: str) -> BinaryIO:
    if is_object_store(path):
        return cast(BinaryIO, filesystem(path).open_input_file(inner_path(path)))
    return Path(path).open("rb")


def _unmarked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a file's chunks without its byte order mark."""
    head = b""
    while len(head) < len(BOM_UTF8) and BOM_UTF8.startswith(head) and (chunk := next(chunks, b"")):
        head += chunk
    yield head.removeprefix(BOM_UTF8)
    yield from chunks


def _unpacked(text: gzip.GzipFile, size: int) -> Iterator[bytes]:
    """Yield what decompresses at once, so that damage takes nothing with it that came before."""
    while chunk := text.read1(size):
        yield chunk


def _seek(text: BinaryIO, start: int, end: int) -> None:
    """Go to the first line that begins at ``start`` or later; behind ``end`` if none begins before."""
    if start:
        text.seek(start - 1)
        while text.tell() <= end and (chunk := text.readline(_CHUNK)) and not chunk.endswith(b"\n"):
            pass


def _cut(text: BinaryIO, part: LineRange, size: int) -> Iterator[bytes]:
    """Yield the lines that begin in a range; the last one goes on behind it."""
    _seek(text, part.start, part.end)
    chunk = b"\n"
    while (left := part.end - text.tell()) > 0 and (chunk := text.read(min(size, left))):
        yield chunk
    while chunk and not chunk.endswith(b"\n") and (chunk := text.readline(size)):
        yield chunk


def _pieces(chunks: Iterator[bytes], longest: int) -> Iterator[bytes | Damage]:
    """Cut chunks of at most ``longest`` bytes into pieces of whole lines; pieces may be empty."""
    held: _HeldLines = _HeldLines()
    long: _LongLine | None = None
    try:
        for chunk in chunks:
            at = chunk.find(b"\n")
            if long is None and held.line_size + (len(chunk) if at < 0 else at) > longest:
                yield held.whole()
                long = _LongLine(held.line())
            if long is None:
                held.add(chunk)
            elif at < 0:
                long.add(chunk)
            else:
                long.add(chunk[:at])
                yield long.damage(longest)
                long = None
                held.add(chunk[at + 1 :])
            if held.size >= _PIECE:
                yield held.whole()
    except _UNREADABLE as error:
        yield held.whole()
        if long is not None:
            yield long.damage(longest)
        yield Damage(_damage_text(error))
    else:
        yield held.whole() + held.line() if long is None else long.damage(longest)


class _LongLine:
    """A line that is too long: its head, its length and its digest."""

    def __init__(self, begun: bytes) -> None:
        self._head, self._size, self._digest = begun[:RAW_LIMIT], len(begun), sha256(begun)

    def add(self, chunk: bytes) -> None:
        self._head += chunk[: RAW_LIMIT - len(self._head)]
        self._size += len(chunk)
        self._digest.update(chunk)

    def damage(self, longest: int) -> Damage:
        whole = whole_in_words(self._size, self._digest.hexdigest())
        return Damage(f"{TOO_LONG} {longest} bytes: {whole}", self._head)


class _HeldLines:
    """The bytes read and not passed on: whole lines, and the beginning of the next one."""

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
