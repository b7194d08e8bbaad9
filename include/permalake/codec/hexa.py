"""Hex, a whole column at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from permalake.codec.cursor import I64, U8, Mask

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_PAIRS = np.stack([np.repeat(_DIGITS, 16), np.tile(_DIGITS, 16)], axis=1)
_BAD = 255
_VALUES = np.full(256, _BAD, np.uint8)
_VALUES[_DIGITS] = np.arange(16)
_VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def hex_text(values: U8) -> U8:
    """ASCII digits of every byte: u8[2 * k] of u8[k]."""
    return _PAIRS.view("<u2").ravel()[values].view(np.uint8)


def to_hex(values: U8) -> pa.StringArray:
    """Lower-case hex of every row of u8[k, w]."""
    rows, width = values.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * (2 * width)
    digits = hex_text(np.ascontiguousarray(values).ravel())
    kind, offset = (pa.string(), np.int32) if offsets[-1] < 2**31 else (pa.large_string(), np.int64)
    buffers = [None, pa.py_buffer(offsets.astype(offset)), pa.py_buffer(digits)]
    return pa.Array.from_buffers(kind, rows, buffers)


def from_hex(texts: pa.StringArray | pa.LargeStringArray | Iterable[str | None]) -> pa.LargeBinaryArray:
    """Bytes of every hex text (a leading ``0x`` is allowed); null where the text is null or no hex."""
    array = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_string())
    array = array.cast(pa.large_string())
    rows = len(array)
    if not rows:
        return pa.array([], pa.large_binary())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + rows + 1]
    held = array.buffers()[2]
    text = np.frombuffer(held, np.uint8) if held is not None else np.zeros(0, np.uint8)
    start, end = offsets[:-1].copy(), offsets[1:]
    prefixed = np.flatnonzero(end - start >= 2)
    prefixed = prefixed[(text[start[prefixed]] == ord("0")) & (text[start[prefixed] + 1] == ord("x"))]
    start[prefixed] += 2
    return _pack(text, start, end, array)


def _pack(text: U8, start: I64, end: I64, array: pa.LargeStringArray) -> pa.LargeBinaryArray:
    length = end - start
    fine = length % 2 == 0
    if array.null_count:
        fine &= ~np.asarray(array.is_null())
    base = start[0]
    nibble = _VALUES[text[base : end[-1]]]
    wrong = np.flatnonzero(nibble == _BAD) + base
    fine &= np.searchsorted(wrong, start) == np.searchsorted(wrong, end)
    kept = _within(start[fine] - base, end[fine] - base, len(nibble))
    digits = nibble if kept.all() else nibble[kept]
    values = (digits[0::2] << 4) | digits[1::2]
    out = np.zeros(len(fine) + 1, np.int64)
    np.cumsum(np.where(fine, length // 2, 0), out=out[1:])
    validity = np.packbits(fine, bitorder="little")
    buffers = [pa.py_buffer(validity), pa.py_buffer(out), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.large_binary(), len(fine), buffers)


def _within(start: I64, end: I64, size: int) -> Mask:
    """Which of ``size`` positions lie in one of the (ascending, disjoint) ranges."""
    step = np.zeros(size + 1, np.int8)
    np.add.at(step, start, 1)
    np.add.at(step, end, -1)
    return np.cumsum(step[:-1], dtype=np.int8).astype(bool)
