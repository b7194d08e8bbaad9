"""Reproducible simulation: values derived from a seed, and files with equal bytes in every run."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TextIO


def digest(*parts: object) -> bytes:
    """Return 32 bytes derived from ``parts`` alone."""
    return blake2b("/".join(map(str, ("permalake synthetic", *parts))).encode(), digest_size=32).digest()


@contextmanager
def opened(file: Path, packed: bool) -> Iterator[TextIO]:
    """Open ``file`` for writing (with ``.gz`` appended when packed); the same lines make the same bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not packed:
        with file.open("w", encoding="utf-8", newline="\n") as plain:
            yield plain
        return
    with (
        file.with_name(file.name + ".gz").open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as zipped,
        io.TextIOWrapper(io.BufferedWriter(zipped, 1 << 20), "utf-8", newline="\n") as text,
    ):
        yield text
