"""Blocks of a digest: 256 rows, encoded column by column; ``docs/digests.md`` specifies the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK_ROWS = 256


def encode_block(block: pa.Table, columns: Sequence[tuple[str, str]]) -> bytes:
    """Return the bytes of one block: the number of rows, then each column's presence and values."""
    [encoded] = _encoded_blocks(block, columns, [(0, len(block))], b"")
    return encoded


def whole_blocks(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Regroup rows so that each table holds whole blocks; the last one may end with a shorter block."""
    rest: pa.Table | None = None
    for batch in batches:
        if rest is not None:
            # Only the block that spans two batches is copied.
            lacking = BLOCK_ROWS - len(rest)
            rest = pa.concat_tables([rest, batch.slice(0, lacking)])
            batch = batch.slice(lacking)  # noqa: PLW2901 - what is left of it
            if len(rest) < BLOCK_ROWS:
                continue
            yield rest
        whole = len(batch) - len(batch) % BLOCK_ROWS
        if whole:
            yield batch.slice(0, whole)
        rest = batch.slice(whole) if whole < len(batch) else None
    if rest is not None:
        yield rest


def leaf_hashes(rows: pa.Table, columns: Sequence[tuple[str, str]]) -> list[bytes]:
    """Return the leaf's hash of each block of rows that begin with a block."""
    count = len(rows)
    spans = [(start, min(start + BLOCK_ROWS, count)) for start in range(0, count, BLOCK_ROWS)]
    return [sha256(block).digest() for block in _encoded_blocks(rows, columns, spans, b"\0")]


def _encoded_blocks(
    rows: pa.Table, columns: Sequence[tuple[str, str]], spans: Sequence[tuple[int, int]], before: bytes
) -> Iterator[bytes]:
    """Yield the bytes of the rows of each span as one block, behind those of ``before``."""
    encoded = [_pieces(rows[name].combine_chunks(), kind, spans) for name, kind in columns]
    for (start, end), *pieces in zip(spans, *encoded, strict=True):
        yield b"".join(chain((before, (end - start).to_bytes(4, "little")), *pieces))


def _pieces(values: pa.Array, kind: str, spans: Sequence[tuple[int, int]]) -> list[tuple[Any, ...]]:
    """Return of each span a column's presence, lengths where values vary in length, and values.

    They are cut out as bytes without looking at single values.
    """
    present = _presence(values).data
    if kind in ("string", "binary"):
        content = values.cast(pa.large_binary()).fill_null(b"")
        return _cut(present, content, content.buffers()[2], 1, spans)
    if kind == "list<int>":
        lists = pc.coalesce(values, pa.scalar([], values.type)).cast(pa.large_list(pa.int64()))
        return _cut(present, lists, pa.array(lists.values).buffers()[1], 8, spans)
    width = 8
    if kind.startswith("decimal"):
        width = 16
        data = _buffer(values.fill_null(0), width)
    elif kind == "double":
        # Adding zero makes the negative zero positive.
        numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        data = memoryview(numbers.astype("<f8").tobytes())
    else:
        data = _buffer(_integers(values).fill_null(0), width)
    return [(present[start:end], data[start * width : end * width]) for start, end in spans]


def _cut(
    present: memoryview, array: Any, data: pa.Buffer | None, width: int, spans: Sequence[tuple[int, int]]
) -> list[tuple[Any, ...]]:
    ends = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(ends).astype("<u4").data
    content = memoryview(data) if data is not None else memoryview(b"")
    places = (ends[[start for start, _ in spans] + [len(array)]] * width).tolist()
    return [
        (present[start:end], lengths[start:end], content[first:last])
        for (start, end), (first, last) in zip(spans, pairwise(places), strict=True)
    ]


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
