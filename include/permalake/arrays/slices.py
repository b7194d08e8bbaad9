"""Slices of a buffer as Arrow arrays, without a Python object per row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from permalake.arrays.cursor import I64, U8, bytes_at

_INLINE = 12  # Arrow's binary views hold up to 12 bytes themselves, longer ones a prefix of 4 and a position.


def slices(data: U8, start: I64, length: I64) -> pa.BinaryArray:
    """Return ``data[start:start + length]`` of every row (u8, i64[k], i64[k]) as Arrow binary.

    ``data`` must be padded as :func:`~permalake.arrays.cursor.load` pads it, and smaller than 2 GiB.
    """
    views = np.zeros((len(start), 4), "<i4")
    views[:, 0] = length
    raw = views.view(np.uint8).reshape(-1, 16)
    raw[:, 4:8] = bytes_at(data, start, 4)
    views[:, 3] = start
    short = np.flatnonzero(length <= _INLINE)
    if len(short):
        inline = bytes_at(data, start[short], _INLINE).copy()
        inline[np.arange(_INLINE) >= length[short, None]] = 0
        raw[short, 4:] = inline
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary_view(), len(start), buffers).cast(pa.binary())


def fixed(values: U8) -> pa.FixedSizeBinaryArray:
    """Return rows of u8[k, w] as Arrow fixed-size binary."""
    rows, width = values.shape
    return pa.Array.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(np.ascontiguousarray(values))])
