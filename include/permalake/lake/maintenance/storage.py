"""Files of the warehouse, wherever it lies."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from pyarrow import fs

from permalake.net.object_storage import filesystem, inner_path

_AT_ONCE = 8


@dataclass(frozen=True)
class Stored:
    """A file: its path as its file system knows it, bytes, and when it was written."""

    path: str
    size: int
    written: datetime


def listing(location: str) -> list[Stored]:
    """List every file below a location; none if there is no such place."""
    selector = fs.FileSelector(inner_path(location), allow_not_found=True, recursive=True)
    return [
        Stored(info.path, info.size or 0, info.mtime or datetime.now(UTC))
        for info in filesystem(location).get_file_info(selector)
        if info.type == fs.FileType.File
    ]


def remove(location: str, files: Iterable[Stored]) -> None:
    """Delete files of the file system that holds ``location``; skip those that are gone."""
    disk = filesystem(location)

    def delete(file: Stored) -> None:
        try:
            disk.delete_file(file.path)
        except FileNotFoundError:
            return

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(delete, files))


def remove_folder(location: str) -> None:
    """Delete a folder with all that is in it."""
    disk = filesystem(location)
    if disk.get_file_info(inner_path(location)).type == fs.FileType.Directory:
        disk.delete_dir(inner_path(location))
