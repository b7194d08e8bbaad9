"""Arrow binary columns composed of lists, numbers and pieces of every row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.arrays.slices import fixed

_NOTHING = pa.scalar(b"", pa.binary())


def combined(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array whose buffers start at offset 0."""
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return pa.concat_arrays(chunks) if chunks else pa.array([], array.type)


def counts(lists: pa.Array) -> I64:
    """Return the lengths of the lists: i64[k]; 0 for a null list."""
    length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return np.asarray(length, np.int64)


def bytes_of(lists: pa.Array) -> pa.BinaryArray:
    """Return lists of numbers as binary; null where the list is null or a number is not 0 to 255."""
    length, values = counts(lists), combined(pc.list_flatten(lists))
    numbers = pc.fill_null(values, -1).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    data = numbers.astype(np.uint8)
    packed = pa.Array.from_buffers(
        pa.binary(), len(length), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    wrong = np.zeros(len(length), bool)
    wrong[np.repeat(np.arange(len(length)), length)[(numbers < 0) | (numbers > 255)]] = True
    return pc.if_else(pc.or_(pc.is_null(lists), pa.array(wrong)), pa.scalar(None, pa.binary()), packed)


def joined(lists: pa.Array, parts: pa.Array) -> pa.BinaryArray:
    """Return the joined bytes of each list's elements.

    ``parts`` are the elements of all lists in order. A row with a null part is null; a null list is empty.
    """
    offsets = np.concatenate([[0], np.cumsum(counts(lists))]).astype(np.int32)
    return pc.binary_join(
        pa.ListArray.from_arrays(pa.array(offsets), combined(parts).cast(pa.binary())), _NOTHING
    )


def uints(values: I64, width: int) -> pa.BinaryArray:
    """Return numbers as little-endian bytes."""
    little = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)
    return fixed(little[:, :width]).cast(pa.binary())


def decimals(values: pa.Array) -> pa.BinaryArray:
    """Return u64 numbers, given as decimals of scale 0, as 8 little-endian bytes; null stays null."""
    values = combined(values)
    if not len(values):
        return pa.array([], pa.binary())
    wide = np.frombuffer(values.buffers()[1], np.uint8)[: 16 * len(values)].reshape(-1, 16)
    packed = fixed(wide[:, :8]).cast(pa.binary())
    return pc.if_else(pc.is_valid(values), packed, pa.scalar(None, pa.binary()))


def concatenated(*parts: pa.Array | bytes) -> pa.BinaryArray:
    """Return the concatenated parts of every row; null where one part is null."""
    columns = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*columns, _NOTHING)


def sized(values: pa.BinaryArray, width: int) -> pa.BinaryArray:
    """Return values, each prefixed with its length in ``width`` bytes."""
    length = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    return concatenated(uints(length, width), values)
