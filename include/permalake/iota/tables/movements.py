"""Tables of what moves: native tokens, the ledger by address, conflicting transactions; in Arrow.

Whole milestones come together, so that sums over a milestone or a transaction are complete.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.arrays.elements import Elements
from permalake.iota.tables.decoded_columns import DecodedRows, hexed, output_ids, shaped, spread
from permalake.iota.tables.output_tables import kind_names

_MILESTONE = ("date", "milestone_index")


def owner(outputs: Elements) -> pa.Array:
    """Return the owners of created outputs: their address, an alias's state controller."""
    return pc.coalesce(outputs["address"], outputs["state_controller"])


def native_tokens(blocks: DecodedRows) -> pa.Table:
    """Return ``native_tokens``: in outputs created and consumed by included transactions."""
    held = blocks.elements("native_tokens")
    columns = spread(blocks.milestone() | {"transaction_id": blocks.transaction_id}, held.row)
    columns |= {name: held[name] for name in ("token_id", "amount", "address")}
    columns["is_spent"] = held["is_spent"].cast(pa.int32())
    columns["output_id"] = hexed(held["output_id"])
    return shaped("native_tokens", columns, len(held))


def ledger_updates(included: DecodedRows) -> pa.Table:
    """Return ``ledger_updates`` of included transactions: what they change, by address."""
    created, consumed = included.elements("outputs"), included.elements("consumed")
    changes = (
        (created, owner(created), output_ids(included["transaction_id"], created), 0),
        (consumed, consumed["address"], hexed(consumed["output_id"]), 1),
    )
    row = np.concatenate([created.row, consumed.row])
    parties = _distinct_per_row(
        row, pa.concat_arrays([address for _, address, _, _ in changes]), len(included)
    )
    transaction_columns = included.milestone() | {"transaction_id": included.transaction_id}
    transaction_columns["counterparties"] = pa.array(np.maximum(parties - 1, 0).astype(np.int32))
    parts = []
    for outputs, address, output_id, is_spent in changes:
        columns = spread(transaction_columns, outputs.row) | {
            "address": address,
            "output_id": output_id,
            "is_spent": pa.repeat(is_spent, len(outputs)),
            "kind": kind_names(outputs["kind"]),
            "amount": outputs["amount"],
        }
        parts.append(shaped("ledger_updates", columns, len(outputs)))
    return _with_address(pa.concat_tables(parts))


def ledger_updates_of_receipts(receipts: DecodedRows) -> pa.Table:
    """Return ``ledger_updates`` of receipts."""
    funds = Elements(pc.struct_field(receipts["receipt"], "funds"))
    columns = spread(receipts.milestone(), funds.row) | {
        "address": funds["address"],
        "output_id": output_ids(receipts["milestone_id"], funds),
        "is_spent": pa.repeat(0, len(funds)),
        "kind": kind_names(funds["kind"]),
        "amount": funds["amount"],
        "counterparties": pa.repeat(0, len(funds)),
    }
    return shaped("ledger_updates", columns, len(funds))


def address_analytics(updates: pa.Table) -> pa.Table:
    """Return ``address_analytics``: sums per address and milestone, from included transactions' updates."""
    spent = pc.equal(updates["is_spent"], 1)
    moved = pa.table(
        {name: updates[name] for name in (*_MILESTONE, "address")}
        | {
            "sent_tokens": pc.if_else(spent, updates["amount"], 0),
            "recv_tokens": pc.if_else(spent, 0, updates["amount"]),
        }
    )
    sums = moved.group_by([*_MILESTONE, "address"], use_threads=False).aggregate(
        [("sent_tokens", "sum"), ("recv_tokens", "sum")]
    )
    columns = {name: sums[name] for name in (*_MILESTONE, "address")}
    columns |= {name: sums[f"{name}_sum"] for name in ("sent_tokens", "recv_tokens")}
    return shaped("address_analytics", columns, sums.num_rows)


def conflicting_transactions(conflicting: DecodedRows) -> pa.Table:
    """Return ``conflicting_transactions``: by signers, and by owners of outputs that were not created."""
    created, signers = conflicting.elements("outputs"), conflicting.elements("signers")
    row = np.concatenate([created.row, signers.row])
    parts = pa.table(
        {
            "row": row,
            "address": pa.concat_arrays([owner(created), signers.values]),
            "is_signer": np.repeat([0, 1], [len(created), len(signers)]).astype(np.int32),
            "amount": pa.concat_arrays([created["amount"], pa.repeat(0, len(signers)).cast(pa.int64())]),
        }
    )
    sums = (
        _with_address(parts)
        .group_by(["row", "address"], use_threads=False)
        .aggregate([("is_signer", "max"), ("amount", "sum")])
    )
    transaction_columns = conflicting.milestone() | {"conflict_reason": conflicting["conflict_reason"]}
    transaction_columns |= {
        "message_id": conflicting.message_id,
        "transaction_id": conflicting.transaction_id,
    }
    columns = spread(transaction_columns, sums["row"].to_numpy()) | {
        "address": sums["address"],
        "is_signer": sums["is_signer_max"],
        "amount": sums["amount_sum"],
    }
    return shaped("conflicting_transactions", columns, sums.num_rows)


def _with_address(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.is_valid(rows["address"]))


def _distinct_per_row(row: I64, values: pa.Array, rows: int) -> I64:
    """Return how many distinct values that are not null each row has."""
    present = np.asarray(pc.is_valid(values))
    code = pc.dictionary_encode(values.drop_null()).indices.to_numpy()
    pairs = np.unique(row[present] * (len(code) + 1) + code)
    return np.bincount(pairs // (len(code) + 1), minlength=rows)
