"""Hex text of whole columns."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from permalake.arrays.cursor import I64, PADDING, U8
from permalake.arrays.slices import slices

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_PAIRS = np.stack([np.repeat(_DIGITS, 16), np.tile(_DIGITS, 16)], axis=1).view("<u2").ravel()


def hex_text(values: U8) -> U8:
    """Return the ASCII digits of every byte: u8[2 * k] of u8[k]."""
    return _PAIRS[values].view(np.uint8)


def to_hex(values: U8) -> pa.StringArray:
    """Return every row of u8[k, w] as lower-case hex."""
    rows, width = values.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * (2 * width)
    digits = hex_text(np.ascontiguousarray(values).ravel())
    kind, offset = (pa.string(), np.int32) if offsets[-1] < 2**31 else (pa.large_string(), np.int64)
    buffers = [None, pa.py_buffer(offsets.astype(offset)), pa.py_buffer(digits)]
    return pa.Array.from_buffers(kind, rows, buffers)


def hex_slices(data: U8, start: I64, length: I64) -> pa.StringArray:
    """Return ``data[start:start + length]`` of every row as lower-case hex."""
    packed = slices(data, start, length)
    offsets = np.frombuffer(packed.buffers()[1], np.int32)[: len(packed) + 1]
    values = packed.buffers()[2]
    digits = hex_text(np.frombuffer(values, np.uint8) if values is not None else np.zeros(0, np.uint8))
    buffers = [None, pa.py_buffer((offsets * 2).astype(np.int32)), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), len(packed), buffers)


def from_hex(texts: pa.StringArray | pa.LargeStringArray | Iterable[str | None]) -> pa.BinaryArray:
    """Return the bytes of every hex text, with or without ``0x``; null where the text is null or not hex."""
    array = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_string())
    array = array.cast(pa.large_string())
    if not len(array):
        return pa.array([], pa.binary())
    try:
        return _whole(array)
    except ValueError:
        # A text of the column is not hex: decode one by one.
        return pa.array([_single(text) for text in array.to_pylist()], pa.binary())


def _whole(array: pa.LargeStringArray) -> pa.BinaryArray:
    """Decode all texts at once; raise ValueError if one of them is not hex."""
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    if array.null_count or (offsets & 1 != offsets[0] & 1).any():
        raise ValueError("odd or null texts spoil the alignment")
    held = array.buffers()[2]
    text = np.frombuffer(held, np.uint8) if held is not None else np.zeros(0, np.uint8)
    start, length = (offsets[:-1] - offsets[0]) // 2, np.diff(offsets) // 2
    text = text[offsets[0] : offsets[-1]]
    begin = np.flatnonzero(length) if len(text) else np.zeros(0, np.int64)
    prefixed = begin[(text[2 * start[begin]] == ord("0")) & (text[2 * start[begin] + 1] == ord("x"))]
    if len(prefixed):
        text = text.copy()
        text[2 * start[prefixed] + 1] = ord("0")
        start[prefixed] += 1
        length[prefixed] -= 1
    data = np.frombuffer(unhexlify(text.data) + bytes(PADDING), np.uint8)
    return slices(data, start, length)


def _single(text: str | None) -> bytes | None:
    try:
        return None if text is None else unhexlify(text.removeprefix("0x"))
    except ValueError:
        return None
