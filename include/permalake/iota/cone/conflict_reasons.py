"""Conflict reasons, recomputed after the cone: landed rows of kind PENDING become blocks with their reason.

Which transactions are included the milestones' Merkle roots have proven, so that a conflicting one depends on
included ones alone, and all can be judged at once. An input was spent before (code 1, 2) or not there yet (3)
when an included transaction of the range says so by its place in white-flag order; what a rule needs besides,
the consumed outputs themselves, :mod:`~permalake.iota.cone.known_outputs` brings.

Where that is not enough, because an input is older than the range and nothing tells of it up to the end of
the transaction's own day, the reason is unknown: the source's own stays, else 0. What a later day tells does
not count, so that a day alone has the reasons that it has in a range. The dust allowance (Chrysalis, code 6)
needs an address's whole past; it is told by exclusion, as the one rule left that can keep a transaction out
which passes all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.contracts.reason_codes import ConeReason
from permalake.iota.codec.blocks import Blocks, decode_blocks
from permalake.iota.codec.conflict_rules import Spending, judge, touches_dust
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.outputs import Outputs, Protocol
from permalake.iota.codec.reasons import Conflict, described
from permalake.iota.cone.decoded import ARROW, Row

_DISAGREEMENT: ConeReason = "conflict_disagreement"

KEY = ("milestone_index", "white_flag_index")
ID = 34
_NEVER = np.iinfo(np.int64).max


def decided(
    batch: pa.RecordBatch,
    protocol: Protocol,
    ends: Mapping[date, int],
    *,
    signatures: bool,
    is_copy: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Blocks of a batch of pending rows (with ``known``), and the problems.

    The arguments are those of :func:`~permalake.iota.cone.known_outputs.resolved`.
    """
    code = recomputed(batch, protocol, ends, signatures=signatures)
    claimed = batch["conflict_reason"].to_numpy()
    reason = claimed if is_copy else np.where(claimed > 0, claimed, np.maximum(code, 0))
    columns = {
        "kind": pa.array(np.full(batch.num_rows, int(Row.BLOCK), np.int8)),
        "conflict_reason": pa.array(reason.astype(np.int32)),
        "consumed": pa.array([[]] * batch.num_rows, ARROW.field("consumed").type),
        "origin": pa.nulls(batch.num_rows, pa.string()),
    }
    arrays = [columns[name] if name in columns else batch[name] for name in ARROW.names]
    yield pa.RecordBatch.from_arrays([_as(a, f) for a, f in zip(arrays, ARROW, strict=True)], schema=ARROW)
    other = np.flatnonzero((code >= 0) & (code != reason) | (code == Conflict.NONE))
    if len(other):
        yield _disagreements(batch.take(pa.array(other)), claimed[other], code[other])


def _as(values: pa.Array, field: pa.Field) -> pa.Array:
    return values if values.type == field.type else values.cast(field.type)


def _disagreements(batch: pa.RecordBatch, claimed: I64, code: I64) -> pa.RecordBatch:
    names = [block_id.hex() for block_id in batch["message_id"].to_pylist()]
    details = [
        f"message {name} conflicts: {described(theirs) if theirs else 'no reason given'} by its source, "
        f"{described(ours)} recomputed"
        for name, theirs, ours in zip(names, claimed.tolist(), code.tolist(), strict=True)
    ]
    rows = batch.num_rows
    columns = {
        "kind": pa.array(np.full(rows, int(Row.PROBLEM), np.int8)),
        "reason": pa.array([_DISAGREEMENT] * rows),
        "detail": pa.array(details),
        "breaks": pa.array([False] * rows),
        **{name: batch[name] for name in ("date", "milestone_index", "raw", "origin")},
    }
    arrays = [_as(columns[f.name], f) if f.name in columns else pa.nulls(rows, f.type) for f in ARROW]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def recomputed(
    batch: pa.RecordBatch, protocol: Protocol, ends: Mapping[date, int], *, signatures: bool
) -> I64:
    """Return the :class:`Conflict` of every pending row.

    NONE when no rule is broken, UNKNOWN when that cannot be told. ``ends`` are the last milestones of days.
    """
    blocks = decode_blocks(batch["raw"], protocol)
    transactions = blocks.transactions
    spent_outputs = batch["known"].flatten()
    outputs = decode_outputs(spent_outputs.field("data"), protocol)
    place = np.stack([batch[name].to_numpy().astype(np.int64) for name in KEY], axis=1)
    end = np.array([ends[day] for day in batch["date"].to_pylist()], np.int64)
    code = _by_history(blocks, spent_outputs, outputs, place, end)
    fine = np.flatnonzero(code == Conflict.NONE)
    spending = Spending(
        protocol=protocol,
        blocks=blocks,
        rows=fine,
        outputs=outputs,
        output_id=transactions.inputs.output_id,
        consumed=np.arange(len(transactions.inputs)),
        time=batch["timestamp"].to_numpy(),
        signatures=signatures,
    )
    if protocol == "chrysalis":
        spending.dust = np.where(touches_dust(spending), -1, 0)
    code[fine] = judge(spending)
    if not signatures:
        # A signature that was not looked at may be the reason.
        code[code == Conflict.NONE] = Conflict.UNKNOWN
    return code


def _by_history(blocks: Blocks, spent_outputs: pa.StructArray, outputs: Outputs, place: I64, end: I64) -> I64:
    """Return what the first input that is spent or not there says.

    NONE where all are there, with their bytes. What lies after milestone ``end`` of a row tells nothing.
    """
    inputs = blocks.transactions.inputs
    here = rank(place[:, 0], place[:, 1])[inputs.transaction]
    milestone = place[:, 0][inputs.transaction]
    created, spent = (_place(spent_outputs.field(name)) for name in ("created", "spent"))
    is_spent = spent < here
    is_later = milestone_of(np.minimum(created, spent)) > end[inputs.transaction]
    has_bytes = np.asarray(pc.is_valid(spent_outputs.field("data"))) & (outputs.error == 0)
    code = np.where(has_bytes, int(Conflict.NONE), int(Conflict.UNKNOWN))
    code[(created > here) & (created < _NEVER)] = Conflict.NOT_FOUND
    code[is_spent] = np.where(
        milestone_of(spent) == milestone, Conflict.SPENT_IN_MILESTONE, Conflict.SPENT_BEFORE
    )[is_spent]
    code[is_later] = Conflict.UNKNOWN
    wrong = np.flatnonzero(code)[::-1]  # backwards, so that the first one counts
    result = np.zeros(len(place), np.int64)
    result[inputs.transaction[wrong]] = code[wrong]
    return result


def _place(ranks: pa.Int64Array) -> I64:
    """Return the ranks, the greatest number where there is none."""
    filled: I64 = pc.fill_null(ranks, _NEVER).to_numpy()
    return filled


def rank(milestone: I64, index: I64) -> I64:
    """Return the rank in white-flag order over all milestones."""
    return (milestone << 31) | index


def milestone_of(ranks: I64) -> I64:
    """Return the milestone of each :func:`rank`."""
    return ranks >> 31
