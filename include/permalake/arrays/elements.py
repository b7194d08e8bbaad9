"""The elements of list columns, one after the other, and ids that name them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64, U8, bytes_at, load

_ID = 32


class Elements:
    """The elements of a list column, one after the other.

    ``row`` gives the row of each element, ``idx`` its position in its list.
    """

    def __init__(self, lists: pa.ListArray) -> None:
        count = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        self._every = lists.flatten()
        self._at: pa.Array | None = None
        self.row: I64 = np.repeat(np.arange(len(count)), count)
        self.idx: I64 = np.arange(len(self.row)) - (np.cumsum(count) - count)[self.row]

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, field: str) -> pa.Array:
        values = self._every
        for name in field.split("."):
            # The kernel also takes on the nulls of the struct, and costs more than all else here.
            values = pc.struct_field(values, name) if values.null_count else values.field(name)
        return self._chosen(values)

    @property
    def values(self) -> pa.Array:
        """The elements themselves."""
        return self._chosen(self._every)

    def _chosen(self, values: pa.Array) -> pa.Array:
        return values if self._at is None else values.take(self._at)

    def where(self, mask: np.ndarray) -> Elements:
        """Return some of the elements (mask)."""
        some = object.__new__(Elements)
        at = np.flatnonzero(mask)
        some._every = self._every
        some._at = pa.array(at) if self._at is None else self._at.take(pa.array(at))
        some.row, some.idx = self.row[mask], self.idx[mask]
        return some


def indexed_ids(ids: pa.Array, elements: Elements) -> U8:
    """Return u8[k, 34]: the id (32 bytes) of each element's row || its position in the list as u16 LE."""
    data, start, _ = load(ids)
    ids_per_element = bytes_at(data, start[elements.row], _ID)
    return np.hstack([ids_per_element, elements.idx.astype("<u2")[:, None].view(np.uint8)])
