"""Unsigned 256-bit integers as exact decimal text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import U8

_HIGH = 24


def to_decimal_text(values: U8) -> pa.StringArray:
    """Return the decimal text of big-endian words, u8[k, 32].

    Those below 2^64 never become Python objects.
    """
    words = np.ascontiguousarray(values)
    low = words[:, _HIGH:].copy().view(">u8")[:, 0].astype(np.uint64)
    text = pa.array(low).cast(pa.string())
    large = words[:, :_HIGH].any(axis=1)
    if not large.any():
        return text
    exact = [str(int.from_bytes(word.tobytes(), "big")) for word in words[large]]
    return pc.replace_with_mask(text, pa.array(large), pa.array(exact, pa.string()))
