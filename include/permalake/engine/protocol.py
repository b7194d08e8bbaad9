"""What executes queries, and the names that it gives to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any, Protocol

import pyarrow as pa

PREVIOUS = "previous_"
"""Prefix of a table: its rows of the latest day before the audited ones."""
VIOLATIONS = pa.schema(
    {"date": pa.date32(), "place": pa.string(), "expected": pa.string(), "found": pa.string()}
)
"""What the check of a law finds."""
Check = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What Python finds wrong in rows: batches of (date, place, expected, found), the last three text."""


class Engine(Protocol):
    """What executes queries of an audit: DuckDB; in tests Spark too."""

    def open(self, name: str) -> None:
        """Make the audited rows of a table known by its name, or with ``previous_`` those before."""

    def put(self, name: str, rows: pa.Table) -> None:
        """Make rows known by name."""

    def keep(self, name: str, query: str, check: Check | None = None) -> None:
        """Make the rows of a query known by name, or what ``check`` finds wrong in them; computed once."""

    def types(self, name: str) -> dict[str, str]:
        """Return the columns of a table with the types that they have, by Spark's names."""

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query over known names."""

    def narrowed(self, start: date, end: date) -> Engine:
        """Return an engine for ``start`` to ``end`` only, both inclusive."""

    def release(self) -> None:
        """Drop what was made known."""
