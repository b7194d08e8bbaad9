"""Data files: how an export and a mirror write them, and whether footers of others' state what is so.

A digest covers the rows. Readers that filter go by the bounds that a footer states, and skip what is outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from decimal import Context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_ROW_GROUP = 100_000
_BATCH_ROWS = 1 << 14
_EXACT = Context(prec=100)


def write_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path) -> None:
    """Write rows into a Parquet file that says nothing but names and types of ``schema`` besides."""
    plain = pa.schema([pa.field(field.name, field.type) for field in schema])
    with pq.ParquetWriter(file, plain, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(plain), row_group_size=_ROW_GROUP)


def rewrite(file: Path, copy: Path, schema: pa.Schema, names: Collection[str]) -> None:
    """Write rows of a Parquet file anew: bounds, and whatever else it holds, are then this machine's own.

    ``names``: the columns that are taken from it; the others of ``schema`` are null.

    Raises:
        pa.ArrowException: if it cannot be read; also ValueError, TypeError and OSError.
    """
    with pq.ParquetFile(file) as source:
        taken = {field.name: field for field in source.schema_arrow if field.name in names}
        written = pa.schema([taken.get(field.name, field) for field in schema])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in source.iter_batches(_ROW_GROUP, columns=list(taken), use_threads=False):
                columns = [
                    batch[field.name] if field.name in taken else pa.nulls(len(batch), field.type)
                    for field in written
                ]
                yield pa.record_batch(columns, names=written.names)

        write_rows(batches(), written, copy)


def footer_fault(file: Path) -> str | None:
    """Return what the footer of a Parquet file states and its rows do not show, in words; None: nothing.

    That is numbers of rows, and of columns that hold no lists the bounds and the numbers of nulls. Indexes of
    pages and Bloom filters are a fault: no export has them, and they are not compared.

    Raises:
        pa.ArrowException: if it cannot be read; also ValueError, TypeError and OSError.
    """
    with pq.ParquetFile(file) as source:
        footer = source.metadata
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        if footer.num_rows != sum(group.num_rows for group in groups):
            return "its footer states another number of rows than there are"
        return next(filter(None, (_group_fault(source, group, at) for at, group in enumerate(groups))), None)


def _group_fault(source: pq.ParquetFile, group: pq.RowGroupMetaData, number: int) -> str | None:
    chunks = [group.column(at) for at in range(group.num_columns)]
    for chunk in chunks:
        if chunk.has_column_index or chunk.has_offset_index or chunk.bloom_filter_offset is not None:
            return f"it has an index of pages or a Bloom filter of {chunk.path_in_schema}"
    flat = {field.name for field in source.schema_arrow if not pa.types.is_nested(field.type)}
    stated = {chunk.path_in_schema: chunk.statistics for chunk in chunks if chunk.statistics is not None}
    names = sorted(flat & stated.keys())
    nulls = Counter[str]()
    ends: dict[str, list[Any]] = {name: [] for name in names}
    batches = source.iter_batches(_BATCH_ROWS, row_groups=[number], columns=names, use_threads=False)
    for batch in batches if names else ():
        for name in names:
            nulls[name] += batch[name].null_count
            ends[name] += [_physical(end) for end in pc.min_max(batch[name]).values() if end.is_valid]
    for name in names:
        if not _holds(stated[name], nulls[name], ends[name]):
            return f"its footer states other bounds or nulls of {name} than its rows have"
    return None


def _holds(stated: pq.Statistics, nulls: int, ends: list[Any]) -> bool:
    """Return whether what is stated of a column is so; ``ends``: the least and greatest of its parts."""
    if stated.has_null_count and stated.null_count != nulls:
        return False
    if not stated.has_min_max or not ends:
        return True
    first, last = stated.min_raw, stated.max_raw
    if isinstance(first, bytes) and isinstance(ends[0], int):  # a decimal
        first, last = (int.from_bytes(raw, "big", signed=True) for raw in (first, last))
    return bool(first <= min(ends) and max(ends) <= last)


def _physical(value: pa.Scalar) -> Any:
    """Return a value as a footer has it: a number without its point, or bytes."""
    kind = value.type
    if pa.types.is_decimal(kind):
        return int(value.as_py().scaleb(kind.scale, _EXACT))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return value.value
    if isinstance(value, pa.BinaryScalar):
        return value.as_buffer().to_pybytes()
    return value.as_py()
