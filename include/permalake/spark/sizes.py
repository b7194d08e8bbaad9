"""Every threshold of size, in one place, and what follows from each.

They measure different things, so they stay apart: bytes of input before a submit, rows once they are staged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

SMALL_BYTES = 64 << 20
"""Input (compressed files counted tenfold) below which a submit gets a JVM and a session that start cheaply:
it ends before the optimising compiler has earned what it costs."""

CHAINED_ROWS = 500_000
"""Staged rows up to which a submit goes on with the next steps: a submit takes longer than their work."""


ONE_PARTITION_ROWS = 50_000
"""Rows of an audit up to which a table is held in one partition in memory."""

INTERPRETED_ROWS = 500_000
"""Rows of an audit up to which its queries are interpreted: they end before generated code would pay."""

FEW_PENDING_ROWS = 200_000
"""Transactions with open conflict reasons up to which these are resolved in one task."""


def is_small(archive: Path | None) -> bool:
    """Return whether the files of a source are small altogether; a service's answer is not known."""
    if archive is None:
        return False
    total = 0
    for size in _sizes(archive):
        total += size
        if total > SMALL_BYTES:
            return False
    return True


def goes_on(rows: Mapping[str, int]) -> bool:
    """Return whether a submit goes on with the next step after staging so many rows, by table."""
    return sum(rows.values()) <= CHAINED_ROWS


def _sizes(root: Path) -> Iterator[int]:
    files = [root] if root.is_file() else (file for file in root.rglob("*") if file.is_file())
    for file in files:
        yield file.stat().st_size * (10 if file.suffix == ".gz" else 1)
