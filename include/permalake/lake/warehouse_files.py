"""Small JSON files of the lake's own in the warehouse, beside the tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyarrow import fs

from permalake.errors import PermalakeError, mishap_of
from permalake.net.object_storage import filesystem, inner_path, is_object_store

RUNBOOK = "docs/runbooks/restore.md"
_DAMAGED = "the file is damaged"


def write_json(location: str, document: Mapping[str, Any]) -> None:
    """Write a JSON file, as :func:`write_whole` does."""
    write_whole(location, json.dumps(document, indent=1, sort_keys=True).encode())


def write_whole(location: str, content: bytes) -> None:
    """Write a file whole: a reader sees the former content or the new one, never a part."""
    disk, path = filesystem(location), inner_path(location)
    try:
        if is_object_store(location):
            with disk.open_output_stream(path) as out:
                out.write(content)
            return
        folder, _, name = path.rpartition("/")
        disk.create_dir(folder, recursive=True)
        partial = f"{path}.{os.getpid()}.part"
        with disk.open_output_stream(partial) as out:
            out.write(content)
        checksum = f"{folder}/.{name}.crc"  # Hadoop's, of the former content
        if disk.get_file_info(checksum).is_file:
            disk.delete_file(checksum)
        disk.move(partial, path)
    except OSError as error:
        raise PermalakeError(f"{location} cannot be written: {fault_of(error)}") from None


def read_json(location: str) -> dict[str, Any] | None:
    """Read a file; None if it does not exist.

    Raises:
        PermalakeError: if it cannot be read, or holds no JSON object.
    """
    try:
        document = json.loads(_bytes_of(location))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise PermalakeError(f"{location} cannot be read: {fault_of(error)}; see {RUNBOOK}") from None
    if not isinstance(document, dict):
        raise PermalakeError(f"{location} cannot be read: {_DAMAGED}; see {RUNBOOK}")
    return document


def _bytes_of(location: str) -> bytes:
    if "://" not in location:  # every command reads such a file, and most of them need no PyIceberg
        return Path(location).read_bytes()
    with filesystem(location).open_input_stream(inner_path(location)) as source:
        return bytes(source.read())


def entries(location: str) -> list[tuple[str, bool]]:
    """List a folder: name, and whether it is a folder; nothing if there is no such folder."""
    selector = fs.FileSelector(inner_path(location), allow_not_found=True)
    try:
        listed = filesystem(location).get_file_info(selector)
    except OSError as error:
        raise PermalakeError(f"{location} cannot be read: {fault_of(error)}") from None
    return sorted((info.base_name, info.type == fs.FileType.Directory) for info in listed)


def fault_of(error: Exception) -> str:
    """Return why a file cannot be read, on one line; whatever a library raises that cannot parse it."""
    if isinstance(error, FileNotFoundError):
        return "the file is missing"
    if isinstance(error, PermissionError):
        return "permission is denied"
    return mishap_of(str(error)) or _line(error) if isinstance(error, OSError) else _DAMAGED


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
