"""Parquet files on a disk, as DuckDB itself reads them: with its own decoder, only the columns it needs."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from permalake.contracts.sql_text import literal, parquet_by_id

_FIELD_ID = b"PARQUET:field_id"
# DuckDB expands a path that holds one of these.
_PATTERNS = frozenset("*?[\\")


def local_files(rows: pa.Table | ds.Dataset) -> list[str]:
    """Return the paths of a dataset that DuckDB can read itself; none if it has to ask Arrow for the rows.

    Columns are found by field id, as Iceberg wants it, so each has to have one.
    """
    if not isinstance(rows, ds.FileSystemDataset) or not isinstance(rows.format, ds.ParquetFileFormat):
        return []
    if not isinstance(rows.filesystem, LocalFileSystem):
        return []
    if not all(_FIELD_ID in (field.metadata or {}) for field in rows.schema):
        return []
    return [] if any(_PATTERNS & set(path) for path in rows.files) else rows.files


def sendable(rows: pa.Table | ds.Dataset) -> pa.Table | ds.Dataset:
    """Return rows as they can be sent to a task: files as they are, others as a table."""
    return rows.to_table() if isinstance(rows, ds.InMemoryDataset) else rows


def read_by_duckdb(files: list[str], schema: pa.Schema, types: Mapping[str, str]) -> str:
    """Return what DuckDB selects from to read these files; ``types``: its types of their columns."""
    ids = {field.name: int(field.metadata[_FIELD_ID]) for field in schema}
    return parquet_by_id(f"[{', '.join(map(literal, files))}]", types, ids)
