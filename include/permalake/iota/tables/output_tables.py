"""Tables of the ledger: outputs created, one table per kind, outputs consumed, and receipts; in Arrow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.elements import Elements
from permalake.iota.codec.outputs import ALIAS, BASIC, DUST_ALLOWANCE, FOUNDRY, NFT, SINGLE, TREASURY
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.tables.decoded_columns import DecodedRows, hexed, output_ids, shaped, spread

KIND_NAMES = {
    SINGLE: "legacy",
    DUST_ALLOWANCE: "legacy",
    TREASURY: "treasury",
    BASIC: "basic",
    ALIAS: "alias",
    FOUNDRY: "foundry",
    NFT: "nft",
}
_METADATA = ("metadata", "immutable_metadata", "state_metadata")
# Column of a table → field of a decoded output, where they are not called the same.
_RENAMED: dict[str, dict[str, str]] = {
    "basic": {"storage_return_address": "return_address"},
    "alias": {"alias_id": "chain_id"},
    "foundry": {
        "foundry_id": "chain_id",
        "minted_tokens": "scheme.minted",
        "melted_tokens": "scheme.melted",
        "maximum_supply": "scheme.maximum",
        "newly_minted": "scheme.newly_minted",
        "newly_melted": "scheme.newly_melted",
        "token_name": "token.name",
        "token_symbol": "token.symbol",
        "token_decimals": "token.decimals",
    },
    "nft": {
        "nft_id": "chain_id",
        "dust_return_address": "return_address",
        "collection_name": "nft.collection",
        "nft_name": "nft.name",
        "nft_uri": "nft.uri",
    },
    "legacy": {"output_type": "kind"},
}
_OWN = (
    *("amount", "address", "sender", "issuer", "state_controller", "governor", "tag", "state_index"),
    *("foundry_counter", "serial_number", "native_token_count", "expiration_return_address"),
)
# The codec's 0 means that the output has no such condition.
_ZERO_IS_NONE = ("timelock_time", "expiration_time", "storage_return_amount")
_NAMES = pa.array([KIND_NAMES[code] for code in range(len(KIND_NAMES))])


def kind_names(kind: pa.Array) -> pa.Array:
    """Return the tables' names of wire kinds."""
    return _NAMES.take(kind)


def created_outputs(included: DecodedRows) -> Iterator[tuple[str, pa.Table]]:
    """Yield ``basic_outputs`` … of included transactions, those that have rows."""
    outputs = included.elements("outputs")
    transaction_columns = included.milestone() | {
        name: included[name] for name in ("inclusion_state", "transaction_id")
    }
    transaction_columns["message_id"] = included.message_id
    for name, some in _by_kind(outputs):
        columns = spread(transaction_columns, some.row)
        columns["output_id"] = output_ids(included["transaction_id"], some)
        columns["data"] = included.cut(some.row, some["start"], some["length"])
        for text in _METADATA:
            columns[text] = included.cut(some.row, some[f"{text}_at.start"], some[f"{text}_at.length"])
        columns |= {field: some[field] for field in _OWN}
        columns |= {field: _none_for_zero(some[field]) for field in _ZERO_IS_NONE}
        columns |= {column: some[field] for column, field in _RENAMED[name].items()}
        yield f"{name}_outputs", shaped(f"{name}_outputs", columns, len(some))


def migrated_outputs(receipts: DecodedRows) -> Iterator[tuple[str, pa.Table]]:
    """Yield the outputs that receipts create; their id is milestone id || u16 LE index."""
    funds = _funds(receipts)
    for name, some in _by_kind(funds):
        columns = spread(receipts.milestone(), some.row)
        columns |= {field: some[field] for field in ("data", "amount", "address")}
        columns["output_id"] = output_ids(receipts["milestone_id"], some)
        columns["inclusion_state"] = pa.repeat(int(InclusionState.INCLUDED), len(some))
        columns["native_token_count"] = pa.repeat(0, len(some))
        columns["output_type"] = some["kind"]
        yield f"{name}_outputs", shaped(f"{name}_outputs", columns, len(some))


def treasury_outputs(receipts: DecodedRows) -> pa.Table:
    """Return ``treasury_outputs``.

    The output id is the milestone's; data is type 2 and the amount (TIP-34).
    """
    left = pc.struct_field(receipts["receipt"], "treasury_output")
    data = [bytes([TREASURY]) + amount.to_bytes(8, "little") for amount in left.to_pylist()]
    columns = receipts.milestone() | {
        "output_id": hexed(receipts["milestone_id"]),
        "inclusion_state": pa.repeat(int(InclusionState.INCLUDED), len(receipts)),
        "amount": left,
        "data": pa.array(data, pa.binary()),
    }
    return shaped("treasury_outputs", columns, len(receipts))


def receipts_table(receipts: DecodedRows) -> pa.Table:
    """Return ``receipts``: a row for each of the funds that a receipt migrated."""
    funds = _funds(receipts)
    receipt = {name: pc.struct_field(receipts["receipt"], name) for name in ("migrated_at", "final")}
    columns = spread(receipts.milestone() | receipt, funds.row)
    columns |= {field: funds[field] for field in ("address", "amount")}
    columns["idx"] = pa.array(funds.idx.astype(np.int32))
    columns["output_id"] = output_ids(receipts["milestone_id"], funds)
    columns["tail_transaction_hash"] = hexed(funds["tail_transaction_hash"])
    return shaped("receipts", columns, len(funds))


def consumed_outputs(included: DecodedRows) -> pa.Table:
    """Return ``consumed_outputs`` of included transactions."""
    spent = included.elements("consumed")
    transaction_columns = included.milestone()
    transaction_columns |= {"transaction_id": included.transaction_id, "message_id": included.message_id}
    columns = spread(transaction_columns, spent.row) | {
        "output_id": hexed(spent["output_id"]),
        "kind": kind_names(spent["kind"]),
        "address": spent["address"],
        "amount": spent["amount"],
        "data": spent["data"],
    }
    return shaped("consumed_outputs", columns, len(spent))


def treasury_spent(receipts: DecodedRows) -> pa.Table:
    """Return the treasury outputs that receipts consume: what the receipt left and its deposits."""
    receipt, funds = receipts["receipt"], _funds(receipts)
    deposits = np.zeros(len(receipts), np.int64)
    np.add.at(deposits, funds.row, funds["amount"].to_numpy())
    columns = receipts.milestone() | {
        "output_id": hexed(pc.struct_field(receipt, "treasury_input")),
        "kind": pa.repeat(KIND_NAMES[TREASURY], len(receipts)),
        "amount": pc.add(pc.struct_field(receipt, "treasury_output"), pa.array(deposits)),
    }
    return shaped("consumed_outputs", columns, len(receipts))


def _funds(receipts: DecodedRows) -> Elements:
    return Elements(pc.struct_field(receipts["receipt"], "funds"))


def _by_kind(outputs: Elements) -> Iterator[tuple[str, Elements]]:
    kind = outputs["kind"].to_numpy()
    present = sorted({KIND_NAMES[code] for code in np.unique(kind).tolist()})
    for name in present:
        yield (
            name,
            outputs.where(np.isin(kind, [code for code, table in KIND_NAMES.items() if table == name])),
        )


def _none_for_zero(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(values, 0), None, values)
