"""Places of a log, its manifests and an export: a folder, a bucket, or a web server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpx

from permalake.errors import PermalakeError
from permalake.lake.warehouse_files import fault_of, write_whole
from permalake.net.object_storage import filesystem, inner_path, is_object_store
from permalake.net.responses import ENCODINGS, decoded

SMALL = 8 << 20
"""Bytes that a file may have which is read into memory."""
_LARGEST = 64 << 30
_PIECE = 1 << 20
_SECONDS = 60.0
_REDIRECTIONS = 3


class Place(Protocol):
    """A place with files, named by paths relative to it."""

    location: str

    def read(self, path: str, limit: int = SMALL) -> bytes | None:
        """Return a file's content; None if there is no such file.

        Raises:
            PermalakeError: if it cannot be read, or is longer than ``limit``.
        """

    @contextmanager
    def on_disk(self, path: str) -> Iterator[Path | None]:
        """Give the block a file of this machine with the content; None if there is no such file.

        Raises:
            PermalakeError: if it cannot be read.
        """


def open_place(location: str) -> Place:
    """Return the place at a location: a path, ``s3://…``, ``gs://…``, ``http://…`` or ``https://…``."""
    if urlsplit(location).scheme in ("http", "https"):
        return WebPlace(location.rstrip("/"))
    return FolderPlace(location.rstrip("/") or "/")


class FolderPlace:
    """A folder of this machine or of a bucket."""

    def __init__(self, location: str) -> None:
        self.location = location if is_object_store(location) else str(Path(location).absolute())

    def read(self, path: str, limit: int = SMALL) -> bytes | None:
        """Return a file's content, as :class:`Place` has it."""
        at = f"{self.location}/{path}"
        try:
            with filesystem(at).open_input_stream(inner_path(at)) as source:
                content: bytes = source.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if "Cannot open for reading" in str(error) and "directory" in str(error):
                return None
            raise PermalakeError(f"{at} cannot be read: {fault_of(error)}") from None
        return _bounded(at, content, limit)

    @contextmanager
    def on_disk(self, path: str) -> Iterator[Path | None]:
        """Give the block a file of this machine, as :class:`Place` has it."""
        at = f"{self.location}/{path}"
        if not is_object_store(self.location):
            yield Path(at) if Path(at).is_file() else None
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            yield copy if _fetched(at, copy) else None

    def write(self, path: str, content: bytes) -> None:
        """Write a file whole: a reader sees the former content or the new one."""
        write_whole(self._inside(path), content)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        at = self._inside(path)
        with suppress(FileNotFoundError):
            filesystem(at).delete_file(inner_path(at))

    def _inside(self, path: str) -> str:
        if ".." in path.split("/"):
            raise PermalakeError(f"{self.location}: {path!r} leads out of it")
        return f"{self.location}/{path}"


class WebPlace:
    """The files below an address of a web server."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._client = httpx.Client(headers={"Accept-Encoding": ENCODINGS}, timeout=_SECONDS)

    def read(self, path: str, limit: int = SMALL) -> bytes | None:
        """Return a file's content, as :class:`Place` has it."""
        content = bytearray()
        for piece in self._pieces(path, limit):
            if piece is None:
                return None
            content += piece
        return bytes(content)

    @contextmanager
    def on_disk(self, path: str) -> Iterator[Path | None]:
        """Give the block a file of this machine, as :class:`Place` has it."""
        with tempfile.TemporaryDirectory() as folder:
            copy: Path | None = Path(folder, "copy")
            with Path(folder, "copy").open("wb") as out:
                for piece in self._pieces(path, _LARGEST):
                    if piece is None:
                        copy = None
                        break
                    out.write(piece)
            yield copy

    def _pieces(self, path: str, limit: int) -> Iterator[bytes | None]:
        """Yield the content in pieces; None alone where the server has no such file."""
        at = f"{self.location}/{path}"
        try:
            with self._answer(at) as answer:
                if answer.status_code in (404, 410):
                    yield None
                    return
                if answer.status_code != 200:
                    raise PermalakeError(f"{at} cannot be read: the server answers {answer.status_code}")
                yield from decoded(answer.iter_raw(_PIECE), answer.headers.get("Content-Encoding", ""), limit)
        except ValueError as error:
            raise PermalakeError(f"{at} cannot be read: {error}") from None
        except httpx.HTTPError as error:
            raise PermalakeError(f"{at} cannot be read: {type(error).__name__} {error}".rstrip()) from None

    @contextmanager
    def _answer(self, at: str) -> Iterator[httpx.Response]:
        """Give the block the answer at an address, nothing of which is read yet.

        Redirections are followed here: httpx would read what comes with one, whatever its size.
        """
        request = self._client.build_request("GET", at)
        for _ in range(_REDIRECTIONS + 1):
            with closing(self._client.send(request, stream=True)) as answer:
                if answer.next_request is None:
                    yield answer
                    return
                request = answer.next_request
        raise PermalakeError(f"{at} cannot be read: more than {_REDIRECTIONS} redirections")


def _fetched(at: str, copy: Path) -> bool:
    """Fetch a file of a bucket; return whether there is one."""
    try:
        with filesystem(at).open_input_stream(inner_path(at)) as source, copy.open("wb") as out:
            while piece := source.read(_PIECE):
                out.write(piece)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise PermalakeError(f"{at} cannot be read: {fault_of(error)}") from None
    return True


def _bounded(at: str, content: bytes, limit: int) -> bytes:
    if len(content) > limit:
        raise PermalakeError(f"{at} is longer than {limit:,} bytes")
    return content
