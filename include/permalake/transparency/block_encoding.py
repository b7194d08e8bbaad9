"""Blocks of a digest: 256 rows, encoded column by column; ``docs/digests.md`` specifies the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK_ROWS = 256
_Pieces = np.ndarray[Any, np.dtype[np.uint8]] | list[memoryview]
"""Bytes of each block: a row each where all have the same number, else listed."""


def encode_block(block: pa.Table, columns: Sequence[tuple[str, str]]) -> bytes:
    """Return the bytes of one block: the number of rows, then each column's presence and values."""
    [pieces] = _blocks(block, columns, len(block), b"")
    return b"".join(pieces)


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
    whole = len(rows) - len(rows) % BLOCK_ROWS
    leaves = []
    for part, size in ((rows.slice(0, whole), BLOCK_ROWS), (rows.slice(whole), len(rows) - whole)):
        for pieces in _blocks(part, columns, size, b"\0") if len(part) else ():
            leaf = sha256()
            for piece in pieces:
                leaf.update(piece)
            leaves.append(leaf.digest())
    return leaves


def _blocks(
    rows: pa.Table, columns: Sequence[tuple[str, str]], size: int, before: bytes
) -> Iterator[tuple[Any, ...]]:
    """Return the bytes of each ``size`` rows as a block, in pieces, behind those of ``before``.

    What takes the same number of bytes in each block is put together for all blocks at once; text and bytes
    are not copied.
    """
    count = len(rows) // size
    head = np.frombuffer(before + size.to_bytes(4, "little"), np.uint8)
    parts: list[_Pieces] = [np.broadcast_to(head, (count, len(head)))]
    for name, kind in columns:
        parts += _parts(rows[name].combine_chunks(), kind, count)
    joined: list[_Pieces] = []
    for _, neighbours in groupby(parts, key=type):
        group = list(neighbours)
        even = [part for part in group if isinstance(part, np.ndarray)]
        joined += [np.concatenate(even, axis=1)] if even else group
    return zip(*joined, strict=True)


def _parts(values: pa.Array, kind: str, count: int) -> list[_Pieces]:
    """Return a column's presence, lengths where values vary in length, and values, each of all blocks."""
    present = _presence(values, count)
    if kind in ("string", "binary"):
        content = _filled(values.cast(pa.binary()), b"")
        return [present, *_varying(content, memoryview(content.buffers()[2] or b""), 1, count)]
    if kind == "list<int>":
        lists = _filled(values, []).cast(pa.list_(pa.int64()))
        if lists.values.null_count:
            raise pa.ArrowInvalid("a list holds a null, which would count as a number")
        return [present, *_varying(lists, _buffer(lists.values, 8), 8, count)]
    if kind.startswith("decimal"):
        return [present, _even(_buffer(_filled(values, 0), 16), count)]
    if kind == "double":
        # Adding zero makes the negative zero positive.
        numbers = _filled(values, 0.0).to_numpy(zero_copy_only=False) + 0.0
        return [present, _even(numbers.astype("<f8"), count)]
    return [present, _even(_buffer(_filled(_integers(values), 0), 8), count)]


def _filled(values: pa.Array, default: Any) -> pa.Array:
    """Return values with a default for null. To look for nulls where there are none would copy all."""
    return pc.coalesce(values, pa.scalar(default, values.type)) if values.null_count else values


def _varying(array: Any, data: memoryview, width: int, count: int) -> list[_Pieces]:
    """Return lengths and values of an array whose values vary in length."""
    ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    places = (ends[:: len(array) // count].astype(np.int64) * width).tolist()
    lengths = np.diff(ends).astype("<u4", copy=False)
    return [_even(lengths, count), [data[start:end] for start, end in pairwise(places)]]


def _even(values: Any, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return values as bytes, those of a block in a row."""
    return np.frombuffer(values, np.uint8).reshape(count, -1)


def _presence(values: pa.Array, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return of each block a bit for each row, the lowest first: set where the row has a value."""
    size = len(values) // count
    if not values.null_count:
        every = np.packbits(np.ones(size, np.uint8), bitorder="little")
        return np.broadcast_to(every, (count, len(every)))
    is_there = pc.is_valid(values).to_numpy(zero_copy_only=False).reshape(count, size)
    return np.packbits(is_there, axis=1, bitorder="little")


def _integers(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(pa.int64())


def _buffer(values: pa.Array, width: int) -> memoryview:
    start, end = values.offset, values.offset + len(values)
    return memoryview(values.buffers()[1] or b"")[start * width : end * width]
