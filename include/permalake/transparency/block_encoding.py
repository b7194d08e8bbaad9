"""Blocks of a digest: 256 rows, encoded column by column; ``docs/digests.md`` specifies the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK_ROWS = 256


def encode_block(block: pa.Table, columns: Sequence[tuple[str, str]]) -> bytes:
    """Return the bytes of one block: the number of rows, then each column's presence and values."""
    return _bytes_of(_encoded(block, columns), 0, len(block))


def whole_blocks(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Regroup rows so that each table holds whole blocks; the last one may end with a shorter block."""
    rest: pa.Table | None = None
    for batch in batches:
        rows = pa.concat_tables([rest, batch]) if rest is not None else batch
        whole = len(rows) - len(rows) % BLOCK_ROWS
        if whole:
            yield rows.slice(0, whole)
        rest = rows.slice(whole) if whole < len(rows) else None
    if rest is not None:
        yield rest


def leaf_hashes(rows: pa.Table, columns: Sequence[tuple[str, str]]) -> Iterator[bytes]:
    """Yield the leaf's hash of each block of rows that begin with a block."""
    encoded = _encoded(rows, columns)
    for start in range(0, len(rows), BLOCK_ROWS):
        end = min(start + BLOCK_ROWS, len(rows))
        yield sha256(_bytes_of(encoded, start, end, b"\0")).digest()


def _encoded(rows: pa.Table, columns: Sequence[tuple[str, str]]) -> list[_Encoded]:
    return [_Encoded(rows[name].combine_chunks(), kind) for name, kind in columns]


def _bytes_of(columns: Sequence[_Encoded], start: int, end: int, before: bytes = b"") -> bytes:
    """Return the bytes of rows start..end (exclusive) as one block, behind those of ``before``."""
    count = (end - start).to_bytes(4, "little")
    return b"".join([before, count, *(part for column in columns for part in column.parts(start, end))])


class _Encoded:
    """A column whose rows can be cut out as bytes without looking at single values."""

    def __init__(self, values: pa.Array, kind: str) -> None:
        self._present = _presence(values).data
        self._data: memoryview | bytes
        self._lengths: memoryview | None = None
        self._ends: np.ndarray[Any, np.dtype[np.int64]] | None = None
        self._width = 8
        if kind in ("string", "binary"):
            content = values.cast(pa.large_binary()).fill_null(b"")
            self._cut(content, content.buffers()[2], 1)
        elif kind == "list<int>":
            lists = pc.coalesce(values, pa.scalar([], values.type)).cast(pa.large_list(pa.int64()))
            self._cut(lists, pa.array(lists.values).buffers()[1], 8)
        elif kind.startswith("decimal"):
            self._width = 16
            self._data = _buffer(values.fill_null(0), 16)
        elif kind == "double":
            # Adding zero makes the negative zero positive.
            self._data = (values.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0).astype("<f8").tobytes()
        else:
            self._data = _buffer(_integers(values).fill_null(0), 8)

    def _cut(self, array: Any, data: pa.Buffer | None, width: int) -> None:
        ends = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        self._lengths = np.diff(ends).astype("<u4").data
        self._ends = ends * width
        self._data = memoryview(data) if data is not None else b""

    def parts(self, start: int, end: int) -> Iterator[Any]:
        """Yield presence, lengths where values vary in length, and values of rows start..end (exclusive)."""
        yield self._present[start:end]
        if self._ends is None or self._lengths is None:
            yield self._data[start * self._width : end * self._width]
        else:
            yield self._lengths[start:end]
            yield self._data[self._ends[start] : self._ends[end]]


def _presence(values: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return of each row 1 where it has a value, 0 for null."""
    if not values.null_count:
        return np.ones(len(values), np.uint8)
    return np.ascontiguousarray(pc.is_valid(values).to_numpy(zero_copy_only=False), np.uint8)


def _integers(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(pa.int64())


def _buffer(values: pa.Array, width: int) -> memoryview:
    return memoryview(values.buffers()[1])[values.offset * width : (values.offset + len(values)) * width]
