"""Decoded rows (Arrow) from a proven batch, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import blake2b_rows
from permalake.arrays.hexa import hex_slices, to_hex
from permalake.arrays.slices import fixed, slices
from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.outputs import ALIAS, BASIC, FOUNDRY, NFT, NO_ADDRESS, SINGLE, Addresses, Outputs
from permalake.iota.codec.transactions import Parts
from permalake.iota.cone.batch import MilestoneBatch
from permalake.iota.cone.decoded import ARROW, CONSUMED, OUTPUT, PARAMETERS, RECEIPT, SLICE, Row
from permalake.iota.cone.ledger_proof import SpentOutputs, output_ids, owners
from permalake.iota.cone.milestone_proof import Cone
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import InclusionState

_EPOCH = date(1970, 1, 1)


def rows_of(
    batch: MilestoneBatch, cones: list[Cone], ledger: SpentOutputs, rules: ConeRules
) -> Iterator[pa.RecordBatch]:
    """Return record batches of :data:`ARROW`: the milestones, their blocks, the problems.

    Blocks are in white-flag order; those that conflict are PENDING.
    """
    if cones:
        yield _milestones(batch, cones, rules)
    if any(cone.order for cone in cones):
        yield _blocks(batch, cones, ledger, rules)
    if batch.problems:
        yield _problems(batch, rules)


def _record_batch(rows: int, kind: Row, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    columns.setdefault("kind", pa.array(np.full(rows, int(kind), np.int8)))
    arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in ARROW]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def _milestones(batch: MilestoneBatch, cones: list[Cone], rules: ConeRules) -> pa.RecordBatch:
    def message(cone: Cone) -> bytes | None:
        return batch.decoded.block_id[cone.message_row].tobytes() if cone.message_row >= 0 else None

    columns = {
        "date": pa.array([cone.date for cone in cones], pa.date32()),
        "milestone_index": pa.array([cone.milestone.index for cone in cones], pa.int32()),
        "timestamp": pa.array([cone.milestone.timestamp for cone in cones], pa.int64()),
        "message_id": pa.array([message(cone) for cone in cones], pa.binary()),
        "raw": pa.array([cone.raw for cone in cones], pa.binary()),
        "milestone_id": pa.array([cone.milestone.milestone_id for cone in cones], pa.binary()),
        "receipt": pa.array([_receipt(cone, rules) for cone in cones], RECEIPT),
        "parameters": pa.array([_parameters(cone) for cone in cones], PARAMETERS),
    }
    return _record_batch(len(cones), Row.MILESTONE, columns)


def _receipt(cone: Cone, rules: ConeRules) -> dict[str, Any] | None:
    """Return the outputs that a receipt creates, and its treasury.

    TIP-17: single outputs; Stardust: basic ones.
    """
    receipt = cone.milestone.receipt
    if receipt is None:
        return None
    kind = SINGLE if rules.protocol == "chrysalis" else BASIC
    owner = Addresses(
        np.array([fund.address_kind for fund in receipt.funds], np.int16),
        np.frombuffer(b"".join(fund.address for fund in receipt.funds), np.uint8).reshape(-1, 32),
    )
    texts = encode_addresses(rules.bech32_hrp, owner.kind, owner.value).to_pylist()
    funds = [
        {
            "data": data,
            "kind": kind,
            "amount": fund.deposit,
            "address": address,
            "tail_transaction_hash": fund.tail_transaction_hash,
        }
        for data, fund, address in zip(receipt.outputs(rules.protocol), receipt.funds, texts, strict=True)
    ]
    return {
        "migrated_at": receipt.migrated_at,
        "final": receipt.final,
        "funds": funds,
        "treasury_input": receipt.treasury_input,
        "treasury_output": receipt.treasury_output,
    }


def _parameters(cone: Cone) -> dict[str, Any] | None:
    """Return the protocol parameters that a milestone announces (TIP-29)."""
    return asdict(cone.milestone.protocol_parameters) if cone.milestone.protocol_parameters else None


def _blocks(
    batch: MilestoneBatch, cones: list[Cone], ledger: SpentOutputs, rules: ConeRules
) -> pa.RecordBatch:
    order = np.concatenate([np.asarray(cone.order, np.int64) for cone in cones])
    sizes = [len(cone.order) for cone in cones]
    decoded, transactions = batch.decoded, batch.decoded.transactions
    days = np.repeat([(cone.date - _EPOCH).days for cone in cones], sizes)
    transaction_of = np.full(len(batch.blocks), -1, np.int64)
    transaction_of[transactions.block] = np.arange(len(transactions.block))
    transaction = transaction_of[order]
    lists = _Lists(transaction, len(transactions.block))
    parents = decoded.parent_offset[order]
    parent_count = decoded.parent_offset[order + 1] - parents
    no_transaction = pa.array(transaction < 0)
    pending = (batch.blocks.state[order] == InclusionState.CONFLICTING) & (transaction >= 0)
    tags = hex_slices(decoded.data, decoded.tag_start[order], decoded.tag_length[order])
    columns = {
        "kind": pa.array(np.where(pending, int(Row.PENDING), int(Row.BLOCK)).astype(np.int8)),
        "date": pa.array(days.astype(np.int32)).cast(pa.date32()),
        "milestone_index": pa.array(batch.blocks.milestone[order].astype(np.int32)),
        "timestamp": pa.array(np.repeat([cone.milestone.timestamp for cone in cones], sizes)),
        "message_id": _binary(decoded.block_id[order]),
        "version": pa.array(decoded.version[order].astype(np.int32)),
        "raw": batch.blocks.raw.take(pa.array(order)),
        "white_flag_index": pa.array(np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)),
        "inclusion_state": pa.array(batch.blocks.state[order].astype(np.int32)),
        "conflict_reason": pa.array(np.maximum(batch.blocks.conflict[order], 0).astype(np.int32)),
        "payload_kind": pa.array(decoded.payload_kind[order].astype(np.int32)),
        "parents": _list(parent_count, _binary(decoded.parent[_spread(parents, parent_count)])),
        "tag": _null_where(decoded.tag_length[order] == 0, tags),
        "milestone_id": _carried(batch, order),
        "transaction_id": pc.if_else(
            no_transaction, None, _binary(transactions.transaction_id[np.maximum(transaction, 0)])
        )
        if len(transactions.block)
        else pa.nulls(len(order), pa.binary()),
        "inputs": _slices(lists, transactions.inputs, batch),
        "unlocks": _slices(lists, transactions.unlocks, batch),
        "outputs": _outputs(lists, batch, rules),
        "consumed": _consumed(lists, batch, ledger, rules),
        "origin": _null_where(~pending, batch.blocks.origin.take(pa.array(order))),
    }
    return _record_batch(len(order), Row.BLOCK, columns)


class _Lists:
    """Lists per emitted row, from parts that are ordered by transaction."""

    def __init__(self, transaction: np.ndarray, transactions: int):
        self.own, self.transactions = transaction, transactions

    def of(self, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(list lengths, rows of the parts) for parts whose transactions are ``owner``."""
        begins = np.append(np.searchsorted(owner, np.arange(self.transactions + 1)), len(owner))
        at = np.where(self.own >= 0, self.own, self.transactions)
        count = begins[at + 1] - begins[at]
        return count, _spread(begins[at], count)


def _spread(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """start, start + 1, … of every row, ``count`` numbers each."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(start - (ends - count), count) + np.arange(total)


def _list(count: np.ndarray, values: pa.Array) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _struct(kind: pa.StructType, columns: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays([columns[field.name] for field in kind], fields=list(kind))


def _binary(values: np.ndarray) -> pa.BinaryArray:
    return fixed(values).cast(pa.binary())


def _null_where(absent: np.ndarray, values: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(absent), pa.scalar(None, values.type), values)


def _scatter(rows: np.ndarray, values: pa.Array, length: int) -> pa.Array:
    """``values`` at ``rows`` of an array that is null elsewhere."""
    place = np.zeros(length, np.int64)
    place[rows] = np.arange(len(rows))
    absent = np.ones(length, bool)
    absent[rows] = False
    return values.take(pa.array(place, mask=absent))


def _texts(addresses: Addresses, rows: np.ndarray, hrp: str) -> pa.Array:
    """bech32 of some addresses, null where there is none."""
    kind = addresses.kind[rows]
    present = np.flatnonzero(kind >= 0)
    held = rows[present]
    return _scatter(present, encode_addresses(hrp, kind[present], addresses.value[held]), len(rows))


def _carried(batch: MilestoneBatch, order: np.ndarray) -> pa.Array:
    carriers = np.flatnonzero(np.isin(order, np.fromiter(batch.decoded.milestones, np.int64)))
    ids = [batch.decoded.milestones[row].milestone_id for row in order[carriers].tolist()]
    return _scatter(carriers, pa.array(ids, pa.binary()), len(order))


def _slices(lists: _Lists, parts: Parts, batch: MilestoneBatch) -> pa.ListArray:
    count, rows = lists.of(parts.transaction)
    return _list(count, _struct(SLICE, _position(parts, rows, batch)))


def _position(parts: Parts, rows: np.ndarray, batch: MilestoneBatch) -> dict[str, pa.Array]:
    block = batch.decoded.transactions.block[parts.transaction[rows]]
    start = parts.start[rows] - batch.decoded.start[block]
    return {
        "start": pa.array(start.astype(np.int32)),
        "length": pa.array(parts.length[rows].astype(np.int32)),
    }


def _outputs(lists: _Lists, batch: MilestoneBatch, rules: ConeRules) -> pa.ListArray:
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
        "tag": _null_where(output.tag_length[rows] == 0, tag),
        "native_token_count": pa.array(np.diff(output.native_token_offset)[rows].astype(np.int32)),
        "return_address": _texts(output.storage_return, rows, rules.bech32_hrp),
        "expiration_return_address": _texts(output.expiration_return, rows, rules.bech32_hrp),
        **_conditions(output, rows),
    }
    for name in ("state_index", "foundry_counter", "serial_number"):
        columns[name] = pa.array(getattr(output, name)[rows])
    for name in ("address", "sender", "issuer", "state_controller", "governor"):
        columns[name] = _texts(getattr(output, name), rows, rules.bech32_hrp)
    return _list(count, _struct(OUTPUT, columns))


def _consumed(lists: _Lists, batch: MilestoneBatch, ledger: SpentOutputs, rules: ConeRules) -> pa.ListArray:
    inputs, outputs = batch.decoded.transactions.inputs, ledger.outputs
    matched = np.flatnonzero(ledger.consumed >= 0)
    count, at = lists.of(inputs.transaction[matched])
    rows = ledger.consumed[matched[at]]
    ids = ledger.output_id[rows]
    columns = {
        "output_id": _binary(ids),
        "data": slices(outputs.data, outputs.start[rows], outputs.length[rows]),
        "length": pa.array(outputs.length[rows].astype(np.int32)),
        "kind": pa.array(outputs.kind[rows].astype(np.int8)),
        "amount": pa.array(outputs.amount[rows]),
        "address": _texts(ledger.owner, rows, rules.bech32_hrp),
        "owner": _former_owners(ledger, rows, rules.bech32_hrp),
        "governor": _texts(outputs.governor, rows, rules.bech32_hrp),
        "chain_id": _chain_ids(outputs, rows, ids),
        "state_index": pa.array(outputs.state_index[rows]),
        **_conditions(outputs, rows),
    }
    return _list(count, _struct(CONSUMED, columns))


def _former_owners(ledger: SpentOutputs, rows: np.ndarray, hrp: str) -> pa.Array:
    """Who owned outputs until they expired; null where nobody else unlocked them."""
    own = owners(ledger.outputs)
    moved = (own.kind != ledger.owner.kind) | (own.value != ledger.owner.value).any(axis=1)
    return _texts(Addresses(np.where(moved, own.kind, NO_ADDRESS), own.value), rows, hrp)


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
    return _scatter(np.concatenate([named, foundry]), texts, len(rows))


def _problems(batch: MilestoneBatch, rules: ConeRules) -> pa.RecordBatch:
    problems = batch.problems
    columns = {
        "date": pa.array([rules.day(p.milestone).date for p in problems], pa.date32()),
        "milestone_index": pa.array([p.milestone for p in problems], pa.int32()),
        "raw": pa.array([p.raw for p in problems], pa.binary()),
        "reason": pa.array([p.reason for p in problems], pa.string()),
        "detail": pa.array([p.detail for p in problems], pa.string()),
        "origin": pa.array([p.origin for p in problems], pa.string()),
        "breaks": pa.array([p.breaks for p in problems], pa.bool_()),
    }
    return _record_batch(len(problems), Row.PROBLEM, columns)
