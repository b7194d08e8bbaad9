"""Names and forms of rows in queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.dataset as ds

Relation = pa.Table | ds.Dataset
"""Rows in memory, or in files that are read as needed."""
PREVIOUS = "previous_"
"""Prefix of a table: its rows of the latest day before the audited ones."""
VIOLATIONS = pa.schema(
    {"date": pa.date32(), "place": pa.string(), "expected": pa.string(), "found": pa.string()}
)
"""The columns of violations that a law's check returns."""
Check = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A law's check in Python: rows to violations (date, place, expected, found; all but the date are text)."""
