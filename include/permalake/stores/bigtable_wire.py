"""Rows of cells as the bytes of Bigtable's MutateRows requests, whole Arrow batches at a time.

An object per cell costs more than the server does; the wire format of Protocol Buffers is a concatenation,
which Arrow does for a batch at once. Messages and field numbers are those of ``google/bigtable/v2``
(``bigtable.proto``, ``data.proto``); a test parses the bytes with Google's own classes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Tag of a field that holds bytes: number << 3 | 2; of one that holds a number: number << 3.
_TABLE_NAME, _ENTRIES = b"\x0a", b"\x12"
_ROW_KEY, _MUTATIONS = b"\x0a", b"\x12"
_SET_CELL = b"\x0a"
_FAMILY, _QUALIFIER, _MICROS, _VALUE = b"\x0a", b"\x12", b"\x18", b"\x22"
# A mutation whose field 4, DeleteFromRow, is set and empty. It comes first in every entry: the row is
# replaced as a whole in one atomic step.
_REPLACE = b"\x12\x02\x22\x00"


def entries(batch: pa.RecordBatch) -> pa.Array:
    """Return each row as the bytes of one entry field of a MutateRowsRequest."""
    parts = [_field(_ROW_KEY, batch["row_key"].cast(pa.binary())), _REPLACE]
    named = [name for name in batch.schema.names if ":" in name and batch[name].null_count < len(batch)]
    if named:
        times = varints(batch["micros"].to_numpy())
        parts += [_mutations(_place(name), times, batch[name].cast(pa.binary())) for name in named]
    if "cells" in batch.schema.names:
        parts.append(_listed(batch["cells"]))
    return _field(_ENTRIES, _joined(*parts, nulls="skip"))


def _listed(rows: pa.ListArray) -> pa.Array:
    """Return the mutations of each row's listed cells, one after another."""
    cells = rows.flatten()
    family, qualifier, value, micros = (
        cells.field(name) for name in ("family", "qualifier", "value", "micros")
    )
    # The few columns that there are, spelled once.
    places = pc.binary_join_element_wise(family, qualifier, ":").dictionary_encode()
    spelled = pa.array([_place(text) for text in places.dictionary.to_pylist()], pa.binary())
    written = _mutations(spelled.take(places.indices), varints(micros.to_numpy()), value.cast(pa.binary()))
    offsets = np.concatenate(([0], np.cumsum(pc.fill_null(pc.list_value_length(rows), 0).to_numpy())))
    return pc.binary_join(
        pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), written), pa.scalar(b"", pa.binary())
    )


def requests(table: str, written: pa.Array, rows: int, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield requests for consecutive entries, each ``(first, end, bytes)``.

    A request has at most ``rows`` entries and, unless one alone is larger, ``size`` bytes.
    """
    head = _TABLE_NAME + _varint(len(table.encode())) + table.encode()
    offsets = np.concatenate(([0], np.cumsum(_lengths(written))))
    data = np.frombuffer(_contiguous(written), np.uint8)
    first = 0
    while first < len(written):
        fitting = int(np.searchsorted(offsets, offsets[first] + size, "right")) - 1
        end = min(max(fitting, first + 1), first + rows, len(written))
        yield first, end, head + data[offsets[first] : offsets[end]].tobytes()
        first = end


def _contiguous(written: pa.Array) -> pa.Buffer:
    """Return the entries' bytes one after another."""
    ((_, offsets, data), start) = (written.buffers(), written.offset)
    bounds = np.frombuffer(offsets, np.int32)[start : start + len(written) + 1]
    return data[int(bounds[0]) : int(bounds[-1])]


def _mutations(place: pa.Array | bytes, times: pa.Array, values: pa.Array) -> pa.Array:
    """Each cell as the bytes of one mutation field of an entry; null for a null."""
    sizes = varints(_lengths(values))
    # Lengths are worked out from the inside to the outside, so that every byte is copied once.
    named = len(place) if isinstance(place, bytes) else _lengths(place)
    inner = named + _lengths(times) + _lengths(sizes) + _lengths(values) + len(_MICROS) + len(_VALUE)
    cell = varints(inner)
    mutation = varints(inner + _lengths(cell) + len(_SET_CELL))
    return _joined(_MUTATIONS, mutation, _SET_CELL, cell, place, _MICROS, times, _VALUE, sizes, values)


def _place(column: str) -> bytes:
    """Family and qualifier of ``FAMILY:QUALIFIER``."""
    family, _, qualifier = column.partition(":")
    parts = (_FAMILY, family.encode()), (_QUALIFIER, qualifier.encode())
    return b"".join(tag + _varint(len(text)) + text for tag, text in parts)


def _field(tag: bytes, values: pa.Array) -> pa.Array:
    """Tag, length and bytes of each value."""
    return _joined(tag, varints(_lengths(values)), values)


def _lengths(values: pa.Array) -> np.ndarray:
    lengths: np.ndarray = pc.fill_null(pc.binary_length(values), 0).to_numpy().astype(np.int64)
    return lengths


def _joined(*parts: pa.Array | bytes, nulls: str = "emit_null") -> pa.Array:
    """Return the parts of each row one after another.

    A null among them makes the whole null, or is left out (``skip``).
    """
    arrays = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*arrays, pa.scalar(b"", pa.binary()), null_handling=nulls)


def varints(values: np.ndarray) -> pa.Array:
    """Return numbers from 0 to 2^63 as Protocol Buffers writes them.

    Seven bits a byte, the lowest first, the highest bit set on all but the last.
    """
    size = np.ones(len(values), np.int64)
    for bits in range(7, int(values.max(initial=0)).bit_length(), 7):
        size += values >> bits > 0
    offsets = np.concatenate(([0], np.cumsum(size)))
    data = np.empty(offsets[-1], np.uint8)
    for place in range(int(size.max(initial=0))):
        has = size > place
        more = (size[has] > place + 1).astype(np.uint8) << 7
        data[offsets[:-1][has] + place] = (values[has] >> 7 * place & 0x7F).astype(np.uint8) | more
    return pa.Array.from_buffers(
        pa.binary(),
        len(values),
        [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)],
    )


def _varint(value: int) -> bytes:
    return bytes(varints(np.array([value]))[0].as_py())
