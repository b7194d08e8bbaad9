"""Every threshold of size, in one place, and what follows from each.

They measure different things, so they stay apart: bytes of input before a submit, rows once they are staged.
The Spark settings that a small run gets are in ``session.py``; ``pipeline/spark_settings.py`` chooses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

SMALL_BYTES = 64 << 20
"""Input (compressed files counted tenfold) below which a submit gets a JVM and a session that start cheaply:
it ends before the optimising compiler has earned what it costs."""

MODERATE_BYTES = 3 << 30
"""The same on a local master, of input whose rows are read by columns in Python: Java joins and writes what
has been decoded. 100,000 VAAs count as 1.1 GB; from about 250,000 on the optimising compiler pays."""

PACKED_BYTES = 32 << 30
"""The same of input that Java only moves in packs. Measured up to 14 GB, which is 5,000,000 messages: the
optimising compiler costs 8 s of processor time and saves none."""

CHAINED_ROWS = 10_000_000
"""Staged rows up to which a submit on one machine goes on with the next steps. A submit of its own costs a
step ten seconds: to start Java and Spark, and to compile again what the step before had compiled. Of more
rows, the audit would add its memory to that of ingest: 5.3 instead of 3.5 GB for 5,000,000 messages."""

TASK_MEMORY = "1g"
"""The memory of DuckDB in one of Spark's tasks, or beside Spark in its driver; the rest goes to the disk."""

MEMORY_ROWS = 200_000
"""Rows of an audit that a task reads into memory, of all tables together: to open small files for every
question takes longer than to judge their rows. Larger tables are read from their files, column by column."""

MEMORY_BYTES = 64 << 20
"""Size of the data files (compressed) of these rows, at most."""

PENDING_ROWS = 200_000
"""Transactions whose conflict reasons one task finds; of more, each task takes so many."""

BROADCAST_ROWS = 500_000
"""Inputs of transactions that every task gets whole, to find them in the history: 100 MB in the driver."""


def is_below(archive: Path | None, limit: int) -> bool:
    """Return whether the files of a source are small altogether; a service's answer is not known."""
    if archive is None:
        return False
    total = 0
    for size in _sizes(archive):
        total += size
        if total > limit:
            return False
    return True


def should_chain(rows: Mapping[str, int], *, is_local: bool) -> bool:
    """Return whether a submit goes on with the next step after staging so many rows, by table.

    On a cluster it always does: what is large there is in tasks, whose memory is their own.
    """
    return not is_local or sum(rows.values()) <= CHAINED_ROWS


def fit_memory(tables: Mapping[str, tuple[int, int]]) -> set[str]:
    """Return the tables that an audit reads into memory: the smallest, as many as fit together.

    ``tables`` gives the rows of each table and the bytes of its files.
    """
    chosen, rows, size = set(), 0, 0
    for name, (more_rows, more_size) in sorted(tables.items(), key=lambda item: item[1]):
        rows, size = rows + more_rows, size + more_size
        if rows > MEMORY_ROWS or size > MEMORY_BYTES:
            break
        chosen.add(name)
    return chosen


def _sizes(root: Path) -> Iterator[int]:
    files = [root] if root.is_file() else (file for file in root.rglob("*") if file.is_file())
    for file in files:
        yield file.stat().st_size * (10 if file.suffix == ".gz" else 1)
