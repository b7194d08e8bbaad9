"""Decoded rows (Arrow) from a proven batch, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.hexa import hex_slices
from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.outputs import BASIC, SINGLE, Addresses, Protocol
from permalake.iota.cone.arrow_lists import Lists, binary_array, list_array, null_where, scatter, spread
from permalake.iota.cone.batch import MilestoneBatch, Problem
from permalake.iota.cone.decoded import ARROW, PARAMETERS, RECEIPT, Row
from permalake.iota.cone.ledger_proof import OUTPUT_ID, SpentOutputs, owners
from permalake.iota.cone.milestone_proof import Cone
from permalake.iota.cone.output_rows import consumed_outputs, created_outputs, part_slices
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.signer_rows import signers
from permalake.iota.cone.source_records import InclusionState, Record
from permalake.iota.cone.token_rows import native_tokens

_EPOCH = date(1970, 1, 1)


def rows_of(
    batch: MilestoneBatch, cones: list[Cone], ledger: SpentOutputs, rules: ConeRules
) -> Iterator[pa.RecordBatch]:
    """Return record batches of :data:`ARROW`: the milestones, their blocks, the problems.

    Blocks are in white-flag order; those that conflict are PENDING.
    """
    if cones:
        yield _milestones(batch, cones, rules)
    if any(len(cone.order) for cone in cones):
        yield _blocks(batch, cones, ledger, rules)
    if batch.problems:
        yield problem_rows(batch.problems, [rules.day(problem.milestone).date for problem in batch.problems])


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


def _receipt(cone: Cone, rules: ConeRules) -> dict[str, object] | None:
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


def _parameters(cone: Cone) -> dict[str, object] | None:
    """Return the protocol parameters that a milestone announces (TIP-29)."""
    return asdict(cone.milestone.protocol_parameters) if cone.milestone.protocol_parameters else None


def _blocks(
    batch: MilestoneBatch, cones: list[Cone], ledger: SpentOutputs, rules: ConeRules
) -> pa.RecordBatch:
    order = np.concatenate([cone.order for cone in cones])
    sizes = [len(cone.order) for cone in cones]
    days = np.repeat([(cone.date - _EPOCH).days for cone in cones], sizes)
    contents = _contents(batch, order, ledger, rules)
    pending = pc.and_(
        pa.array(batch.blocks.state[order] == InclusionState.CONFLICTING),
        pc.is_valid(contents["transaction_id"]),
    ).to_numpy(zero_copy_only=False)
    columns = {
        "kind": pa.array(np.where(pending, int(Row.PENDING), int(Row.BLOCK)).astype(np.int8)),
        "date": pa.array(days.astype(np.int32)).cast(pa.date32()),
        "milestone_index": pa.array(batch.blocks.milestone[order].astype(np.int32)),
        "timestamp": pa.array(np.repeat([cone.milestone.timestamp for cone in cones], sizes)),
        "white_flag_index": pa.array(np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)),
        "inclusion_state": pa.array(batch.blocks.state[order].astype(np.int32)),
        "conflict_reason": pa.array(np.maximum(batch.blocks.conflict[order], 0).astype(np.int32)),
        "origin": null_where(~pending, batch.blocks.origin.take(pa.array(order))),
    }
    return _record_batch(len(order), Row.BLOCK, columns | contents)


def loose_rows(raw: pa.Array, protocol: Protocol, bech32_hrp: str) -> pa.Table:
    """Return rows (:data:`ARROW`) of well-formed blocks that have no place in the tangle yet."""
    constants: dict[str, object] = {"kind": int(Record.BLOCK), "milestone": 0, "origin": "", "context": False}
    nulls = {name: pa.nulls(len(raw), pa.int32()) for name in ("state", "conflict", "number")}
    nulls |= {name: pa.nulls(len(raw), pa.binary()) for name in ("id", "link")}
    records = {name: pa.repeat(value, len(raw)) for name, value in constants.items()}
    batch = MilestoneBatch.of(pa.table({**records, **nulls, "raw": raw}), protocol)
    nothing = decode_outputs(pa.array([], pa.binary()), protocol)
    transactions = batch.decoded.transactions
    spends_nothing = SpentOutputs(
        np.zeros(len(transactions.block), bool),
        np.full(len(transactions.inputs.transaction), -1, np.int64),
        nothing,
        np.zeros((0, OUTPUT_ID), np.uint8),
        owners(nothing),
    )
    order = np.flatnonzero(batch.sound)
    contents = _contents(batch, order, spends_nothing, ConeRules(protocol, bech32_hrp, (), 0))
    return pa.Table.from_batches([_record_batch(len(order), Row.BLOCK, contents)])


def _contents(
    batch: MilestoneBatch, order: np.ndarray, ledger: SpentOutputs, rules: ConeRules
) -> dict[str, pa.Array]:
    """Return the columns of the contents of some rows' blocks, wherever in the tangle these are."""
    decoded, transactions = batch.decoded, batch.decoded.transactions
    transaction_of = np.full(len(batch.blocks), -1, np.int64)
    transaction_of[transactions.block] = np.arange(len(transactions.block))
    transaction = transaction_of[order]
    lists = Lists(transaction, len(transactions.block))
    parents = decoded.parent_offset[order]
    parent_count = decoded.parent_offset[order + 1] - parents
    no_transaction = pa.array(transaction < 0)
    tags = hex_slices(decoded.data, decoded.tag_start[order], decoded.tag_length[order])
    columns = {
        "message_id": binary_array(decoded.block_id[order]),
        "version": pa.array(decoded.version[order].astype(np.int32)),
        "raw": batch.blocks.raw.take(pa.array(order)),
        "payload_kind": pa.array(decoded.payload_kind[order].astype(np.int32)),
        "parents": list_array(parent_count, binary_array(decoded.parent[spread(parents, parent_count)])),
        "tag": null_where(decoded.tag_length[order] == 0, tags),
        "milestone_id": _carried(batch, order),
        "transaction_id": pc.if_else(
            no_transaction, None, binary_array(transactions.transaction_id[np.maximum(transaction, 0)])
        )
        if len(transactions.block)
        else pa.nulls(len(order), pa.binary()),
        "inputs": part_slices(lists, transactions.inputs, batch),
        "unlocks": part_slices(lists, transactions.unlocks, batch),
        "outputs": created_outputs(lists, batch, ledger, rules),
        "consumed": consumed_outputs(lists, batch, ledger, rules),
    }
    for name, values in (
        ("native_tokens", native_tokens(lists, batch, ledger, rules)),
        ("signers", signers(lists, batch, rules)),
    ):
        if values is not None:
            columns[name] = values
    return columns


def _carried(batch: MilestoneBatch, order: np.ndarray) -> pa.Array:
    carriers = np.flatnonzero(np.isin(order, np.fromiter(batch.decoded.milestones, np.int64)))
    ids = [batch.decoded.milestones[row].milestone_id for row in order[carriers].tolist()]
    return scatter(carriers, pa.array(ids, pa.binary()), len(order))


def problem_rows(problems: Sequence[Problem], dates: Sequence[date]) -> pa.RecordBatch:
    """Return the rows of problems and of the days that they belong to."""
    columns = {
        "date": pa.array(dates, pa.date32()),
        "milestone_index": pa.array([p.milestone for p in problems], pa.int32()),
        "raw": pa.array([p.raw for p in problems], pa.binary()),
        "reason": pa.array([p.reason for p in problems], pa.string()),
        "detail": pa.array([p.detail for p in problems], pa.string()),
        "origin": pa.array([p.origin for p in problems], pa.string()),
        "breaks": pa.array([p.breaks for p in problems], pa.bool_()),
    }
    return _record_batch(len(problems), Row.PROBLEM, columns)
