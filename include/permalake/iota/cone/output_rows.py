"""Outputs of the decoded frame: what transactions create and consume, with positions in their messages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from permalake.arrays.cursor import blake2b_rows
from permalake.arrays.hexa import hex_slices, to_hex
from permalake.arrays.slices import slices
from permalake.iota.codec.outputs import ALIAS, FOUNDRY, NFT, NO_ADDRESS, Addresses, Outputs
from permalake.iota.codec.transactions import Parts
from permalake.iota.cone.arrow_lists import (
    Lists,
    address_texts,
    binary_array,
    list_array,
    null_where,
    scatter,
    struct_array,
)
from permalake.iota.cone.batch import MilestoneBatch
from permalake.iota.cone.decoded import CONSUMED, OUTPUT, SLICE
from permalake.iota.cone.ledger_proof import SpentOutputs, output_ids, owners
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.token_rows import described, token_schemes


def part_slices(lists: Lists, parts: Parts, batch: MilestoneBatch) -> pa.ListArray:
    """Return where the parts of each row's transaction lie in its message."""
    count, rows = lists.of(parts.transaction)
    return list_array(count, struct_array(SLICE, _position(parts, rows, batch)))


def _position(parts: Parts, rows: np.ndarray, batch: MilestoneBatch) -> dict[str, pa.Array]:
    block = batch.decoded.transactions.block[parts.transaction[rows]]
    start = parts.start[rows] - batch.decoded.start[block]
    return {
        "start": pa.array(start.astype(np.int32)),
        "length": pa.array(parts.length[rows].astype(np.int32)),
    }


def created_outputs(
    lists: Lists, batch: MilestoneBatch, ledger: SpentOutputs, rules: ConeRules
) -> pa.ListArray:
    """Return the outputs of each row's transaction, as :data:`OUTPUT`."""
    transactions, output = batch.decoded.transactions, batch.decoded.transactions.output
    parts = transactions.outputs
    count, rows = lists.of(parts.transaction)
    ids = output_ids(transactions.transaction_id[parts.transaction[rows]], parts.idx[rows])
    tag = hex_slices(output.data, output.tag_start[rows], output.tag_length[rows])
    columns = {
        **_position(parts, rows, batch),
        "kind": pa.array(output.kind[rows].astype(np.int8)),
        "amount": pa.array(output.amount[rows]),
        "chain_id": _chain_ids(output, rows, ids),
        "tag": null_where(output.tag_length[rows] == 0, tag),
        "native_token_count": pa.array(np.diff(output.native_token_offset)[rows].astype(np.int32)),
        "return_address": address_texts(output.storage_return, rows, rules.bech32_hrp),
        "expiration_return_address": address_texts(output.expiration_return, rows, rules.bech32_hrp),
        "scheme": token_schemes(batch, ledger, rows),
        **described(output, rows),
        **_conditions(output, rows),
    }
    origin = batch.decoded.start[transactions.block[parts.transaction[rows]]]
    for name in ("metadata", "immutable_metadata", "state_metadata"):
        start, length = (getattr(output, f"{name}_{what}")[rows] for what in ("start", "length"))
        columns[f"{name}_at"] = _held(start - origin, length)
    for name in ("state_index", "foundry_counter", "serial_number"):
        columns[name] = pa.array(getattr(output, name)[rows])
    for name in ("address", "sender", "issuer", "state_controller", "governor"):
        columns[name] = address_texts(getattr(output, name), rows, rules.bech32_hrp)
    return list_array(count, struct_array(OUTPUT, columns))


def consumed_outputs(
    lists: Lists, batch: MilestoneBatch, ledger: SpentOutputs, rules: ConeRules
) -> pa.ListArray:
    """Return what each row's transaction consumed, as :data:`CONSUMED`."""
    inputs, outputs = batch.decoded.transactions.inputs, ledger.outputs
    matched = np.flatnonzero(ledger.consumed >= 0)
    count, at = lists.of(inputs.transaction[matched])
    rows = ledger.consumed[matched[at]]
    ids = ledger.output_id[rows]
    columns = {
        "output_id": binary_array(ids),
        "data": slices(outputs.data, outputs.start[rows], outputs.length[rows]),
        "length": pa.array(outputs.length[rows].astype(np.int32)),
        "kind": pa.array(outputs.kind[rows].astype(np.int8)),
        "amount": pa.array(outputs.amount[rows]),
        "address": address_texts(ledger.owner, rows, rules.bech32_hrp),
        "owner": _former_owners(ledger, rows, rules.bech32_hrp),
        "governor": address_texts(outputs.governor, rows, rules.bech32_hrp),
        "chain_id": _chain_ids(outputs, rows, ids),
        "state_index": pa.array(outputs.state_index[rows]),
        **_conditions(outputs, rows),
    }
    return list_array(count, struct_array(CONSUMED, columns))


def _held(start: np.ndarray, length: np.ndarray) -> pa.StructArray:
    """Return slices, null where they are empty."""
    held = np.flatnonzero(length)
    ends = {"start": start[held].astype(np.int32), "length": length[held].astype(np.int32)}
    return scatter(held, struct_array(SLICE, {name: pa.array(ends[name]) for name in ends}), len(length))


def _former_owners(ledger: SpentOutputs, rows: np.ndarray, hrp: str) -> pa.Array:
    """Who owned outputs until they expired; null where nobody else unlocked them."""
    created_owner = owners(ledger.outputs)
    moved = (created_owner.kind != ledger.owner.kind) | (created_owner.value != ledger.owner.value).any(
        axis=1
    )
    return address_texts(
        Addresses(np.where(moved, created_owner.kind, NO_ADDRESS), created_owner.value), rows, hrp
    )


def _conditions(outputs: Outputs, rows: np.ndarray) -> dict[str, pa.Array]:
    names = ("timelock_time", "expiration_time", "storage_return_amount")
    return {name: pa.array(getattr(outputs, name)[rows]) for name in names}


def _chain_ids(outputs: Outputs, rows: np.ndarray, output_id: np.ndarray) -> pa.Array:
    """Hex of alias, NFT (32 bytes) and foundry (38) ids; a zero id stands for BLAKE2b-256(output id)."""
    kind, chain_id = outputs.kind[rows], outputs.chain_id[rows]
    named = np.flatnonzero((kind == ALIAS) | (kind == NFT))
    short = chain_id[named, :32].copy()
    new = np.flatnonzero(~short.any(axis=1))
    width = output_id.shape[1]
    fresh = np.ascontiguousarray(output_id[named[new]])
    short[new] = blake2b_rows(fresh.reshape(-1), width * np.arange(len(new)), np.full(len(new), width))
    foundry = np.flatnonzero(kind == FOUNDRY)
    texts = pa.concat_arrays([to_hex(short), to_hex(chain_id[foundry])])
    return scatter(np.concatenate([named, foundry]), texts, len(rows))
