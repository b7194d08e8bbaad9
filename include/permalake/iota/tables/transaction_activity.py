"""The activity of included transactions, as inx-chronicle measures it: per transaction, in NumPy.

Definitions: inx-chronicle's ``analytics`` module (docs/peers.md).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.arrays.elements import Elements
from permalake.iota.codec.outputs import ALIAS
from permalake.iota.tables.decoded_columns import DecodedRows
from permalake.iota.tables.movements import owner

BUCKETS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)
"""Smallest size of each bucket of transactions by inputs or outputs."""


def bucket(size: I64) -> I64:
    """Return the place in :data:`BUCKETS` of every number of inputs or outputs; -1 for none."""
    return np.searchsorted(BUCKETS, size, side="right") - 1


def gains(included: DecodedRows) -> I64:
    """Return the tokens of every transaction that changed hands (base tokens).

    That is what each address received beyond what it sent (inx-chronicle's ``transferred_amount``).
    """
    created, consumed = included.elements("outputs"), included.elements("consumed")
    row = np.concatenate([created.row, consumed.row])
    address = _codes(pa.concat_arrays([_receivers(included, created), consumed["address"]]))
    amount = np.concatenate([created["amount"].to_numpy(), -consumed["amount"].to_numpy()])
    pair, place = np.unique(row * (len(address) + 1) + address, return_inverse=True)
    gain = sums(place, amount, len(pair))
    return sums(pair // (len(address) + 1), np.maximum(gain, 0), len(included))


class ChainChanges:
    """Chains of one kind (aliases, foundries, NFTs) that transactions create, go on with, or destroy.

    Arrays give the row of the transaction, once for each chain.
    """

    def __init__(self, included: DecodedRows, kind: int) -> None:
        created, consumed = (_of_kind(included.elements(name), kind) for name in ("outputs", "consumed"))
        code = _codes(pa.concat_arrays([created["chain_id"], consumed["chain_id"]]))
        self._most = len(code) + 1
        self._created, self._consumed = created, consumed
        self._after = created.row * self._most + code[: len(created)]
        self._before = consumed.row * self._most + code[len(created) :]

    @property
    def created(self) -> I64:
        """Transactions that create a chain."""
        return np.setdiff1d(self._after, self._before) // self._most

    @property
    def transferred(self) -> I64:
        """Transactions that consume a chain's output and create its next."""
        return np.intersect1d(self._after, self._before) // self._most

    @property
    def destroyed(self) -> I64:
        """Transactions that destroy a chain."""
        return np.setdiff1d(self._before, self._after) // self._most

    def changed(self, field: str) -> I64:
        """Return transactions after which a chain goes on with another value of a field."""
        order = np.argsort(self._before, kind="stable")
        before = self._before[order]
        place = np.searchsorted(before, self._after)
        continues = np.flatnonzero(np.isin(self._after, before))
        now = self._created[field].take(pa.array(continues))
        was = self._consumed[field].take(pa.array(order[place[continues]]))
        differs = pc.fill_null(pc.not_equal(now, was), False).to_numpy(zero_copy_only=False)
        changed: I64 = self._after[continues[differs]] // self._most
        return changed


def changes(included: DecodedRows, name: str, kind: int) -> dict[str, I64]:
    """Return, by column of ``ms_activity``, the transactions that change a chain of a kind."""
    chains = ChainChanges(included, kind)
    counts = {"created": chains.created, "destroyed": chains.destroyed}
    if kind == ALIAS:
        fields = {"governor_changed": "governor", "state_changed": "state_index"}
        counts |= {change: chains.changed(field) for change, field in fields.items()}
    else:
        counts |= {"transferred": chains.transferred}
    return {f"{name}_{change}_count": rows for change, rows in counts.items()}


def _receivers(included: DecodedRows, created: Elements) -> pa.Array:
    """Return who holds created outputs at their milestone's time: the return address of an expired one."""
    until = created["expiration_time"].to_numpy()
    expired = (until > 0) & (until <= included["timestamp"].to_numpy()[created.row])
    return pc.if_else(pa.array(expired), created["expiration_return_address"], owner(created))


def _of_kind(outputs: Elements, kind: int) -> Elements:
    return outputs.where(outputs["kind"].to_numpy() == kind)


def _codes(values: pa.Array) -> I64:
    """Return a number for each distinct value; null is one of them."""
    encoded = pc.dictionary_encode(values, null_encoding="encode").indices
    codes: I64 = encoded.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def sums(place: I64, values: I64, length: int) -> I64:
    """Return the exact sums of values by their place: i64[length]."""
    added = np.zeros(length, np.int64)
    np.add.at(added, place, values)
    return added
