"""Activity per milestone: ``ms_analytics``, ``ms_activity``; in Arrow and NumPy.

``ms_activity`` follows the definitions of inx-chronicle's ``analytics`` module (docs/peers.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.iota.codec.blocks import MILESTONE, NO_PAYLOAD, TAGGED_DATA, TRANSACTION
from permalake.iota.codec.outputs import ALIAS, FOUNDRY, NFT
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.tables.decoded_columns import DecodedRows, shaped
from permalake.iota.tables.transaction_activity import BUCKETS, bucket, changes, gains, sums

# Measured by inx-chronicle, though no block may hold one at top level.
_TREASURY_TRANSACTION = 4
_PAYLOADS = {
    "no_payload": NO_PAYLOAD,
    "tagged_data": TAGGED_DATA,
    "transaction_payload": TRANSACTION,
    "milestone_payload": MILESTONE,
    "treasury_transaction": _TREASURY_TRANSACTION,
}
_STATES = {
    "confirmed": InclusionState.INCLUDED,
    "conflicting": InclusionState.CONFLICTING,
    "no_transaction": InclusionState.NO_TRANSACTION,
}
_CHAINS = (("nft", NFT), ("alias", ALIAS), ("foundry", FOUNDRY))


class _Milestones:
    """Sums over the messages of each milestone."""

    def __init__(self, milestones: DecodedRows, messages: DecodedRows) -> None:
        self.index = milestones["milestone_index"].to_numpy()
        self.at: I64 = self.place(messages["milestone_index"])

    def place(self, milestone_index: pa.Array) -> I64:
        place: I64 = np.searchsorted(self.index, milestone_index.to_numpy())
        return place

    def count(self, messages: np.ndarray) -> I64:
        """Count messages (mask, or rows)."""
        return np.bincount(self.at[messages], minlength=len(self.index))

    def total(self, at: I64, values: I64) -> I64:
        """Add values up by milestone."""
        return sums(at, values, len(self.index))

    def buckets(self, at: I64, sizes: I64) -> pa.ListArray:
        """Count sizes by bucket and milestone."""
        place = bucket(sizes)
        counted = np.zeros((len(self.index), len(BUCKETS)), np.int32)
        np.add.at(counted, (at[place >= 0], place[place >= 0]), 1)
        offsets = np.arange(len(self.index) + 1, dtype=np.int32) * len(BUCKETS)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(counted.ravel()))


def milestone_activity(
    milestones: DecodedRows, messages: DecodedRows, address_analytics: pa.Table
) -> Iterator[tuple[str, pa.Table]]:
    """Yield ``ms_analytics`` and ``ms_activity``: a row for each milestone, also one without messages.

    ``messages`` are all of the milestones, also conflicting ones whose reasons are not known yet.
    """
    by_milestone = _Milestones(milestones, messages)
    figures = _of_messages(by_milestone, messages)
    figures["message_count"] = np.bincount(by_milestone.at, minlength=len(by_milestone.index))
    included = messages["inclusion_state"].to_numpy() == int(InclusionState.INCLUDED)
    transactions, at = messages.where(pa.array(included)), by_milestone.at[included]
    figures |= _of_transactions(by_milestone, transactions, at)
    active = by_milestone.place(address_analytics["milestone_index"])
    figures["active_addresses"] = np.bincount(active, minlength=len(by_milestone.index))
    figures["transaction_count"] = figures["confirmed_count"]
    sizes = {side: pc.list_value_length(transactions[f"{side}s"]) for side in ("input", "output")}
    columns = {f"{side}_buckets": by_milestone.buckets(at, size.to_numpy()) for side, size in sizes.items()}
    columns |= {name: pa.array(values) for name, values in figures.items()} | milestones.milestone()
    for table in ("ms_analytics", "ms_activity"):
        yield table, shaped(table, columns, len(milestones))


def _of_messages(by_milestone: _Milestones, messages: DecodedRows) -> dict[str, I64]:
    payload, state = (messages[name].to_numpy() for name in ("payload_kind", "inclusion_state"))
    size = pc.binary_length(messages["raw"]).to_numpy().astype(np.int64)
    counts = {f"{name}_count": by_milestone.count(payload == kind) for name, kind in _PAYLOADS.items()}
    counts |= {f"{name}_count": by_milestone.count(state == int(code)) for name, code in _STATES.items()}
    counts["message_bytes"] = by_milestone.total(by_milestone.at, size)
    for name, kind in list(_PAYLOADS.items())[1:]:
        is_of_kind = payload == kind
        counts[f"{name.removesuffix('_payload')}_bytes"] = by_milestone.total(
            by_milestone.at[is_of_kind], size[is_of_kind]
        )
    return counts


def _of_transactions(by_milestone: _Milestones, included: DecodedRows, at: I64) -> dict[str, I64]:
    created = included.elements("outputs")
    counts = {
        "transferred_tokens": by_milestone.total(at[created.row], created["amount"].to_numpy()),
        "moved_tokens": by_milestone.total(at, gains(included)),
    }
    for name, kind in _CHAINS:
        for column, rows in changes(included, name, kind).items():
            counts[column] = np.bincount(at[rows], minlength=len(by_milestone.index))
    return counts
