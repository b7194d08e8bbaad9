"""Parquet files on a disk, as DuckDB itself reads them: with its own decoder, only the columns it needs."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

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
    """Return what DuckDB selects from to read these files; columns that a file lacks are null.

    ``types`` gives DuckDB's names of the columns' types. With a schema no file is opened to plan a query.
    """
    columns = ", ".join(
        f"{int(field.metadata[_FIELD_ID])}: "
        f"{{name: {_literal(field.name)}, type: {_literal(types[field.name])}, default_value: NULL}}"
        for field in schema
    )
    listed = ", ".join(map(_literal, files))
    return f"read_parquet([{listed}], schema = MAP {{{columns}}}, hive_partitioning = false)"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
