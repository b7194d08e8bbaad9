"""Spark's ``xxhash64`` of whole columns.

It is XXH64 of a column's value, with the hash of the columns before it as seed. Fingerprints in the lake are
made of it, whichever engine computes them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from permalake.arrays.cursor import I64, U8, U64
from permalake.arrays.ragged import combined

_FIRST_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.array([prime], np.uint64)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def spark_xxhash64(*columns: pa.Array | pa.ChunkedArray) -> pa.Int64Array:
    """Return ``xxhash64`` of columns of text, ``long``, ``int`` or dates; a null leaves the hash as it is."""
    hashes = np.full(len(columns[0]), _FIRST_SEED, np.uint64)
    for column in map(combined, columns):
        mixed = _MIXED[str(column.type)](column, hashes)
        held = column.is_valid().to_numpy(zero_copy_only=False)
        hashes = np.where(held, mixed, hashes)
    return pa.array(hashes.view(np.int64))


def _of_longs(column: pa.Array, seed: U64) -> U64:
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    return _finished(_word(seed + _P5 + np.uint64(8), values))


def _of_ints(column: pa.Array, seed: U64) -> U64:
    values = column.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint32)
    return _finished(_half_word(seed + _P5 + np.uint64(4), values.astype(np.uint64)))


def _of_texts(column: pa.Array, seed: U64) -> U64:
    array = column.cast(pa.large_string()).fill_null("")
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    held = array.buffers()[2]
    data = np.frombuffer(held, np.uint8) if held is not None else np.zeros(0, np.uint8)
    length = np.diff(offsets)
    hashes = np.empty(len(array), np.uint64)
    # Addresses of one network are all of one length, or of a few.
    for size in np.unique(length):
        rows = np.flatnonzero(length == size)
        hashes[rows] = _of_bytes(_rows(data, offsets[:-1][rows], int(size)), seed[rows])
    return hashes


def _rows(data: U8, start: I64, size: int) -> U8:
    """Return ``data[start:start + size]`` of every row."""
    if len(start) and start[-1] - start[0] == (len(start) - 1) * size:
        rows: U8 = data[start[0] : start[-1] + size].reshape(len(start), size)
    else:
        rows = data[start[:, None] + np.arange(size)]
    return rows


def _of_bytes(values: U8, seed: U64) -> U64:
    """Return XXH64 of every row of u8[k, w]."""
    size = values.shape[1]
    words = np.ascontiguousarray(values[:, : size // 8 * 8]).view("<u8")
    if size >= _STRIPE:
        lanes = [seed + _P1 + _P2, seed + _P2, seed.copy(), seed - _P1]
        for at in range(size // _STRIPE * 4):
            lanes[at % 4] = _round(lanes[at % 4], words[:, at])
        hashes = sum((_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)), _P1 * 0)
        for lane in lanes:
            hashes = (hashes ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    else:
        hashes = seed + _P5
    hashes = hashes + np.uint64(size)
    for at in range(size // _STRIPE * 4, size // 8):
        hashes = _word(hashes, words[:, at])
    done = size // 8 * 8
    if size - done >= 4:
        halves = np.ascontiguousarray(values[:, done : done + 4]).view("<u4")[:, 0]
        hashes = _half_word(hashes, halves.astype(np.uint64))
        done += 4
    for at in range(done, size):
        hashes = _rotated(hashes ^ (values[:, at].astype(np.uint64) * _P5), 11) * _P1
    return _finished(hashes)


def _round(lane: U64, word: U64) -> U64:
    return _rotated(lane + word * _P2, 31) * _P1


def _word(hashes: U64, word: U64) -> U64:
    return _rotated(hashes ^ _round(np.zeros_like(hashes), word), 27) * _P1 + _P4


def _half_word(hashes: U64, half: U64) -> U64:
    return _rotated(hashes ^ (half * _P1), 23) * _P2 + _P3


def _finished(hashes: U64) -> U64:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def _rotated(values: U64, by: int) -> U64:
    return (values << np.uint64(by)) | (values >> np.uint64(64 - by))


_MIXED = {
    "string": _of_texts,
    "large_string": _of_texts,
    "int64": _of_longs,
    "int32": _of_ints,
    "date32[day]": _of_ints,
}
