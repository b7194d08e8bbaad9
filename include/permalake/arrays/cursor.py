"""Reading many rows of bytes at once: one position per row in one concatenated buffer.

Every read is checked against the end of its row. A row that breaks a rule gets a fault code (those of
:mod:`~permalake.arrays.faults` and those of its format) and reads zeros from then on. A fault never raises
and never affects other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from permalake.arrays import faults

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Binary: TypeAlias = pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray

# Zero bytes behind the last row, so that a fixed-width read at any valid position stays inside the buffer.
PADDING = 128
_MIX = np.uint64(0x9E3779B97F4A7C15)


def load(raw: Binary) -> tuple[U8, I64, I64]:
    """Return the concatenated bytes (padded), and start and length of every row. A null row is empty."""
    if isinstance(raw, pa.ChunkedArray):
        raw = raw.combine_chunks() if raw.num_chunks != 1 else raw.chunk(0)
    if not (pa.types.is_binary(raw.type) or pa.types.is_large_binary(raw.type)):
        raw = raw.cast(pa.large_binary())
    rows = len(raw)
    if not rows:
        return np.zeros(PADDING, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    _, offset_buffer, value_buffer = raw.buffers()
    kind = np.int64 if pa.types.is_large_binary(raw.type) else np.int32
    offsets = np.frombuffer(offset_buffer, kind)[raw.offset : raw.offset + rows + 1].astype(np.int64)
    values = np.frombuffer(value_buffer, np.uint8) if value_buffer is not None else np.zeros(0, np.uint8)
    first = offsets[0]
    data = np.concatenate([values[first : offsets[-1]], np.zeros(PADDING, np.uint8)])
    offsets -= first
    start, length = offsets[:-1].copy(), np.diff(offsets)
    if raw.null_count:
        length[np.asarray(raw.is_null())] = 0
    return data, start, length


def bytes_at(data: U8, position: I64, width: int) -> U8:
    """Return ``width`` (at most :data:`PADDING`) bytes at every position: u8[k, width]."""
    windows = np.ndarray((len(data) - width + 1,), f"V{width}", data, strides=(1,))
    return windows[position].view(np.uint8).reshape(len(position), width)


def uint_at(data: U8, position: I64, width: int) -> npt.NDArray[np.unsignedinteger]:
    """Return the little-endian unsigned integer of 1, 2, 4 or 8 bytes at every position."""
    if width == 1:
        return data[position]
    return bytes_at(data, position, width).view(f"<u{width}").ravel()


def text(values: U8) -> npt.NDArray[np.bytes_]:
    """Return rows of u8[k, w] as fixed-width strings, which sort as the bytes do."""
    return np.ascontiguousarray(values).view(f"S{values.shape[1]}").ravel()


def expand(count: I64) -> tuple[I64, I64]:
    """Return row and index within the row of ``sum(count)`` elements: ([0, 0, 1], [0, 1, 0]) for [2, 1]."""
    row = np.repeat(np.arange(len(count)), count)
    first = np.cumsum(count) - count
    return row, np.arange(len(row)) - first[row]


def disordered(row: I64, values: U8, rows: int, *, unique: bool = True) -> Mask:
    """Return which of ``rows`` hold elements (grouped by ascending ``row``) out of order, or repeated."""
    result = np.zeros(rows, bool)
    if len(row) > 1:
        keys = text(values)
        wrong = keys[1:] <= keys[:-1] if unique else keys[1:] < keys[:-1]
        result[row[1:][wrong & (row[1:] == row[:-1])]] = True
    return result


def duplicated(row: I64, values: U8, rows: int) -> Mask:
    """Return which of ``rows`` hold an element (u8[k, w], grouped by ascending ``row``) twice."""
    result = np.zeros(rows, bool)
    if len(row) < 2:
        return result
    width = -(-values.shape[1] // 8) * 8
    padded = np.zeros((len(row), width), np.uint8)
    padded[:, : values.shape[1]] = values
    mixed = row.astype(np.uint64) * _MIX
    for word in padded.view("<u8").T:
        mixed = (mixed ^ word) * _MIX
        mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed)
    same = mixed[order][1:] == mixed[order][:-1]
    # Equal mixes are only a hint; the few rows that have them are compared byte by byte.
    equal_mixes = np.unique(row[order[1:][same]])
    begins, ends = np.searchsorted(row, equal_mixes), np.searchsorted(row, equal_mixes, side="right")
    for candidate, begin, end in zip(equal_mixes.tolist(), begins.tolist(), ends.tolist(), strict=True):
        raw, size = values[begin:end].tobytes(), values.shape[1]
        result[candidate] = len({raw[at : at + size] for at in range(0, len(raw), size)}) < end - begin
    return result


class Cursor:
    """Positions of k rows that are read in lockstep."""

    def __init__(self, data: U8, position: I64, end: I64, error: U8 | None = None) -> None:
        self.data, self.position, self.end = data, position, end
        self.error = np.zeros(len(position), np.uint8) if error is None else error

    def __len__(self) -> int:
        return len(self.position)

    @property
    def fine(self) -> Mask:
        """Rows without a fault."""
        fine: Mask = self.error == 0
        return fine

    def at(self, rows: I64) -> Cursor:
        """Return a cursor over some of the rows; :meth:`put` merges it back."""
        return Cursor(self.data, self.position[rows], self.end[rows], self.error[rows])

    def put(self, rows: I64, part: Cursor) -> Self:
        """Take over positions and faults of a cursor made by :meth:`at`."""
        self.position[rows] = part.position
        self.error[rows] = part.error
        return self

    def fail(self, where: Mask, fault: int) -> None:
        """Mark rows as malformed; an earlier fault stays."""
        if where.any():
            self.error[where & (self.error == 0)] = fault

    def take(self, width: int | I64) -> I64:
        """Step over ``width`` bytes and return where they began; rows with fewer bytes are truncated."""
        begin = self.position
        after = begin + width
        short = after > self.end
        if short.any():
            self.fail(short, faults.TRUNCATED)
            after = np.where(short, begin, after)
        self.position = after
        return begin

    def u8(self) -> I64:
        """Return the next byte of every row."""
        return self.data[self.take(1)].astype(np.int64)

    def u16(self) -> I64:
        """Return the next little-endian u16 of every row."""
        return uint_at(self.data, self.take(2), 2).astype(np.int64)

    def u32(self) -> I64:
        """Return the next little-endian u32 of every row."""
        return uint_at(self.data, self.take(4), 4).astype(np.int64)

    def u64(self) -> U64:
        """Return the next little-endian u64 of every row, unsigned."""
        return uint_at(self.data, self.take(8), 8).astype(np.uint64, copy=False)

    def bytes(self, width: int) -> U8:
        """Return the next ``width`` bytes of every row: u8[k, width]."""
        return bytes_at(self.data, self.take(width), width)


def list_elements(cursor: Cursor, most: int, fault: int) -> Iterator[tuple[I64, Cursor]]:
    """Yield the first, second, … elements of lists that follow their u8 count.

    Args:
        cursor: The rows, each at the count of its list.
        most: The largest count allowed.
        fault: The code of rows whose count is larger.

    Yields:
        The rows that have such an element, and a cursor at the elements. Rows that break a rule are
        dropped.
    """
    count = cursor.u8()
    cursor.fail(count > most, fault)
    rows = np.flatnonzero((count > 0) & cursor.fine)
    for done in range(most):
        rows = rows[count[rows] > done]
        if not len(rows):
            return
        part = cursor.at(rows)
        yield rows, part
        cursor.put(rows, part)
        rows = rows[part.fine]


def blake2b_rows(data: U8, start: I64, length: I64) -> U8:
    """Return the BLAKE2b-256 hash of every slice: u8[k, 32]."""
    view = np.ascontiguousarray(data).data
    ends = (start + length).tolist()
    digests = [blake2b(view[a:b], digest_size=32).digest() for a, b in zip(start.tolist(), ends, strict=True)]
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 32)
