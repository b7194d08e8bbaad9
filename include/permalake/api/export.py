"""Rows as a stream of CSV, Parquet or Arrow; memory holds one row group at most."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Generator, Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from permalake.web.table_pages import json_value

FORMATS = {
    "csv": ("text/csv", "csv"),
    "parquet": ("application/vnd.apache.parquet", "parquet"),
    "arrow": ("application/vnd.apache.arrow.stream", "arrows"),
}
"""Media type and file suffix by format."""
_ROW_GROUP_BYTES = 8 << 20


def encoded(form: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Generator[bytes]:
    """Yield the bytes of a file of this format."""
    return _ENCODERS[form](schema, batches)


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Generator[bytes]:
    """Yield CSV with a header; values as ``permalake query --format csv`` writes them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(schema.names)
    for batch in batches:
        columns = [_cells(column) for column in batch.columns]
        writer.writerows(zip(*columns, strict=True))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    if text.getvalue():
        yield text.getvalue().encode()


def _cells(column: pa.Array) -> list[object]:
    """Return a column's values; numbers and text are written as they are, and None as nothing."""
    values: list[object] = column.to_pylist()
    plain = pa.types.is_integer(column.type) or pa.types.is_string(column.type)
    return values if plain else [json_value(value) for value in values]


def _arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Generator[bytes]:
    sink = _Chunks()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))
            yield from sink.taken()
    yield from sink.taken()


def _parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Generator[bytes]:
    sink = _Chunks()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(group).cast(schema))
            yield from sink.taken()
    yield from sink.taken()


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += batch.nbytes
        if size >= _ROW_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class _Chunks(io.RawIOBase):
    """A file that is only written, and read away between two writes."""

    def __init__(self) -> None:
        super().__init__()
        self._chunks: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: object) -> int:
        chunk = bytes(data)  # type: ignore[call-overload]
        self._chunks.append(chunk)
        self._position += len(chunk)
        return len(chunk)

    def taken(self) -> list[bytes]:
        """Return what was written since the last call."""
        chunks, self._chunks = self._chunks, []
        return chunks


_ENCODERS: dict[str, Callable[[pa.Schema, Iterable[pa.RecordBatch]], Generator[bytes]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
}
