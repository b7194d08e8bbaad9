"""A digest of everything that a day is built from, which shows whether a rebuild could differ."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from permalake.contracts.steps import DayInputs
from permalake.version import VERSION


def fingerprint(inputs: DayInputs) -> str | None:
    """Return the SHA-256 (hex) over version, configuration and input files of a network.

    A file counts with its path below the source, its size and its modification time, so that nothing is
    read. None for a live source (a node, an API): what it would answer today is not known without asking.
    """
    if inputs.live:
        return None
    digest = hashlib.sha256()
    for part in (VERSION, inputs.configuration, *_listing(inputs.roots)):
        digest.update(part.encode(errors="surrogateescape"))  # names of files may be any bytes
        digest.update(b"\0")
    return digest.hexdigest()


def _listing(roots: tuple[Path | None, ...]) -> Iterator[str]:
    for number, root in enumerate(roots):
        if root is not None:
            yield from (f"{number}/{line}" for line in _files(root))


def _files(root: Path) -> Iterator[str]:
    if root.is_file():
        yield _line(root, root.name)
        return
    for folder, below, names in os.walk(root):
        below.sort()
        for name in sorted(names):
            file = Path(folder) / name
            yield _line(file, str(file.relative_to(root)))


def _line(file: Path, name: str) -> str:
    try:
        status = file.stat()
    except FileNotFoundError:  # a link to nothing, which no source reads
        return name
    return f"{name} {status.st_size} {status.st_mtime_ns}"
