"""Bytes put together column by column: Arrow binary from lists, numbers and pieces of every row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.arrays.slices import fixed

_NOTHING = pa.scalar(b"", pa.binary())


def one(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array that begins at its buffers' beginning."""
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return pa.concat_arrays(chunks) if chunks else pa.array([], array.type)


def counts(lists: pa.Array) -> I64:
    """Lengths of the lists; of a null one 0."""
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def bytes_of(lists: pa.Array) -> pa.BinaryArray:
    """Lists of numbers 0 to 255 as binary; null where the list is null, or a number is none of these."""
    length, values = counts(lists), one(pc.list_flatten(lists))
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
    """For each list the bytes of its elements, joined; ``parts`` are those of all lists in order. Null where
    a part is null; of a null list nothing."""
    offsets = np.concatenate([[0], np.cumsum(counts(lists))]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), one(parts).cast(pa.binary())), _NOTHING)


def uints(values: I64, width: int) -> pa.BinaryArray:
    """Numbers as little-endian bytes."""
    little = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)
    return fixed(little[:, :width]).cast(pa.binary())


def decimals(values: pa.Array) -> pa.BinaryArray:
    """u64 numbers, as decimals of scale 0, as their 8 little-endian bytes; null where the number is."""
    values = one(values)
    if not len(values):
        return pa.array([], pa.binary())
    wide = np.frombuffer(values.buffers()[1], np.uint8)[: 16 * len(values)].reshape(-1, 16)
    packed = fixed(wide[:, :8]).cast(pa.binary())
    return pc.if_else(pc.is_valid(values), packed, pa.scalar(None, pa.binary()))


def concatenated(*parts: pa.Array | bytes) -> pa.BinaryArray:
    """The parts of every row, one after another; null where one is null."""
    columns = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*columns, _NOTHING)


def sized(values: pa.BinaryArray, width: int) -> pa.BinaryArray:
    """Values behind their length of so many bytes."""
    length = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    return concatenated(uints(length, width), values)
