"""Arrow arrays of the decoded frame: lists per row, structs, and values that only some rows have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.slices import fixed
from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.outputs import Addresses


class Lists:
    """Lists per emitted row, from parts that are ordered by transaction."""

    def __init__(self, transaction: np.ndarray, transactions: int):
        self.row_transactions, self.transactions = transaction, transactions

    def of(self, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return list lengths, and rows of the parts, for parts whose transactions are ``owner``."""
        begins = np.append(np.searchsorted(owner, np.arange(self.transactions + 1)), len(owner))
        at = np.where(self.row_transactions >= 0, self.row_transactions, self.transactions)
        count = begins[at + 1] - begins[at]
        return count, spread(begins[at], count)


def spread(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return start, start + 1, … of every row, ``count`` numbers each."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(start - (ends - count), count) + np.arange(total)


def list_array(count: np.ndarray, values: pa.Array, absent: np.ndarray | None = None) -> pa.ListArray:
    """Return lists of ``count`` values each, null where ``absent``."""
    offsets = pa.array(np.concatenate([[0], np.cumsum(count)]).astype(np.int32))
    mask = None if absent is None else pa.array(absent)
    return pa.ListArray.from_arrays(offsets, values, mask=mask)


def struct_array(kind: pa.StructType, columns: dict[str, pa.Array]) -> pa.StructArray:
    """Return structs of a type from its fields by name."""
    return pa.StructArray.from_arrays([columns[field.name] for field in kind], fields=list(kind))


def binary_array(values: np.ndarray) -> pa.BinaryArray:
    """Return the rows of u8[k, w]."""
    return fixed(values).cast(pa.binary())


def null_where(absent: np.ndarray, values: pa.Array) -> pa.Array:
    """Return values, null where ``absent``."""
    return pc.if_else(pa.array(absent), pa.scalar(None, values.type), values)


def scatter(rows: np.ndarray, values: pa.Array, length: int) -> pa.Array:
    """Return ``values`` at ``rows`` of an array that is null elsewhere."""
    place = np.zeros(length, np.int64)
    place[rows] = np.arange(len(rows))
    absent = np.ones(length, bool)
    absent[rows] = False
    return values.take(pa.array(place, mask=absent))


def address_texts(addresses: Addresses, rows: np.ndarray, hrp: str) -> pa.Array:
    """Return bech32 of some addresses, null where there is none."""
    kind = addresses.kind[rows]
    present = np.flatnonzero(kind >= 0)
    held = rows[present]
    return scatter(present, encode_addresses(hrp, kind[present], addresses.value[held]), len(rows))
