"""Conflict reasons, recomputed after the cone: landed rows of kind PENDING become blocks with their reason.

Which transactions are included the milestones' Merkle roots have proven, so that a conflicting one depends on
included ones alone, and all can be judged at once. An input was spent before (code 1, 2) or not there yet (3)
when an included transaction of the range says so by its place in white-flag order; what a rule needs besides,
the consumed outputs themselves, comes from the range's created and consumed outputs, and from ``history``
where the caller has it. Only rows that conflict are shuffled, and what meets their inputs.

Where that is not enough, because an input is older than the range and nothing tells of it, the reason is
unknown: the source's own stays, else 0. The dust allowance (Chrysalis, code 6) needs an address's whole past;
it is told by exclusion, as the one rule left that can keep a transaction out which passes all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.arrays.cursor import I64
from permalake.iota.codec.blocks import Blocks, decode_blocks
from permalake.iota.codec.conflict_rules import Spending, judge, touches_dust
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.outputs import Outputs, Protocol
from permalake.iota.codec.reasons import Conflict, described
from permalake.iota.cone.decoded import ARROW, DECODED, Row, of_kind
from permalake.iota.cone.prove import AsRows, Sink

# What a caller knows of an output from before the range, in one row or several: its bytes, and the milestones
# that created and spent it. Null is what the row does not tell.
HISTORY = "output_id binary, data binary, created int, spent int"
KEY = ("milestone_index", "white_flag_index")
ID = 34


def resolved(
    landed: DataFrame,
    touched: DataFrame,
    protocol: Protocol,
    *,
    signatures: bool = True,
    history: DataFrame | None = None,
    complete: bool = False,
    few: bool = False,
    sink: Sink = AsRows(),  # noqa: B008
) -> DataFrame:
    """Return what ``sink`` makes of landed rows of kind PENDING as blocks, each with its conflict reason.

    A problem (that breaks nothing) is added for each that the source gives another reason.

    ``touched`` (:data:`~permalake.iota.cone.touched_outputs.TOUCHED`) tells of the range's outputs,
    ``history`` (:data:`HISTORY`) of those from before it; ``complete``: together they tell of every output
    there ever was, so that one that is in neither does not exist. ``few``: the inputs go to every task,
    rather than all that might meet them through a shuffle.
    """
    pending = of_kind(landed, Row.PENDING)
    near = F.broadcast if few else _as_it_is
    wanted = pending.select(*KEY, F.posexplode(_input_ids()).alias("idx", "output_id"))
    known = _known(touched, wanted.select("output_id").distinct(), history, near)
    inputs = (
        wanted.join(known, "output_id", "left")
        .groupBy(*KEY)
        .agg(F.sort_array(F.collect_list(F.struct("idx", "data", "created", "spent"))).alias("known"))
    )
    both = pending.join(inputs, list(KEY), "left")
    columns = [name for name in DECODED.names if name != "consumed"]
    ordered = both.select(*columns, "known").sortWithinPartitions(*KEY)
    return ordered.mapInArrow(_decide(protocol, signatures, complete, sink), sink.schema)


def _as_it_is(frame: DataFrame) -> DataFrame:
    return frame


def _input_ids() -> Column:
    return F.transform("inputs", lambda part: F.substring("raw", part["start"] + 2, F.lit(ID)))


def _known(
    touched: DataFrame,
    wanted: DataFrame,
    history: DataFrame | None,
    near: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Return what is known of the wanted outputs: (output_id, data, created, spent).

    The latter two are places in white-flag order (milestone index, white-flag index).
    """
    place = F.struct(F.col(KEY[0]).alias("m"), F.col(KEY[1]).alias("w"))
    told = touched.join(near(wanted), "output_id").select(
        "output_id",
        "data",
        F.when(~F.col("is_spent"), place).alias("created"),
        F.when(F.col("is_spent"), place).alias("spent"),
    )
    if history is not None:
        told = told.unionByName(
            history.join(near(wanted), "output_id").select(
                "output_id", "data", _before("created").alias("created"), _before("spent").alias("spent")
            )
        )
    gathered = (F.max("data"), F.min("created"), F.min("spent"))
    names = ("data", "created", "spent")
    return told.groupBy("output_id").agg(
        *(value.alias(name) for value, name in zip(gathered, names, strict=True))
    )


def _before(milestone: str) -> Column:
    place = F.struct(F.col(milestone).alias("m"), F.lit(0).alias("w"))
    return F.when(F.col(milestone).isNotNull(), place)


def _decide(
    protocol: Protocol, signatures: bool, complete: bool, sink: Sink
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            if batch.num_rows:
                told = decided(batch, protocol, signatures=signatures, complete=complete)
                yield pa.Table.from_batches(told, ARROW)

    return lambda batches: sink(groups(batches))


def decided(
    batch: pa.RecordBatch, protocol: Protocol, *, signatures: bool, complete: bool
) -> Iterator[pa.RecordBatch]:
    """Blocks of a batch of pending rows (with ``known``), and the problems."""
    code = recomputed(batch, protocol, signatures=signatures, complete=complete)
    claimed = batch["conflict_reason"].to_numpy()
    reason = np.where(claimed > 0, claimed, np.maximum(code, 0))
    columns = {
        "kind": pa.array(np.full(batch.num_rows, int(Row.BLOCK), np.int8)),
        "conflict_reason": pa.array(reason.astype(np.int32)),
        "consumed": pa.array([[]] * batch.num_rows, ARROW.field("consumed").type),
        "origin": pa.nulls(batch.num_rows, pa.string()),
    }
    own = [columns[name] if name in columns else batch[name] for name in ARROW.names]
    yield pa.RecordBatch.from_arrays([_as(a, f) for a, f in zip(own, ARROW, strict=True)], schema=ARROW)
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
        "reason": pa.array(["conflict_disagreement"] * rows),
        "detail": pa.array(details),
        "breaks": pa.array([False] * rows),
        **{name: batch[name] for name in ("date", "milestone_index", "raw", "origin")},
    }
    arrays = [_as(columns[f.name], f) if f.name in columns else pa.nulls(rows, f.type) for f in ARROW]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def recomputed(batch: pa.RecordBatch, protocol: Protocol, *, signatures: bool, complete: bool) -> I64:
    """Return the :class:`Conflict` of every pending row.

    NONE when no rule is broken, UNKNOWN when that cannot be told.
    """
    blocks = decode_blocks(batch["raw"], protocol)
    transactions = blocks.transactions
    known = batch["known"].flatten()
    outputs = decode_outputs(known.field("data"), protocol)
    place = np.stack([batch[name].to_numpy().astype(np.int64) for name in KEY], axis=1)
    code = _by_history(blocks, known, outputs, place, complete)
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


def _by_history(blocks: Blocks, known: pa.StructArray, outputs: Outputs, place: I64, complete: bool) -> I64:
    """Return what the first input that is spent or not there says.

    NONE where all are there, with their bytes.
    """
    inputs = blocks.transactions.inputs
    here = _order(place[:, 0], place[:, 1])[inputs.transaction]
    milestone = place[:, 0][inputs.transaction]
    created, _ = _place(known.field("created"))
    spent, spent_at = _place(known.field("spent"))
    never = np.iinfo(np.int64).max
    created, is_created = np.where(created < 0, never, created), created >= 0
    is_spent = (spent >= 0) & (spent < here)
    has_bytes = np.asarray(pc.is_valid(known.field("data"))) & (outputs.error == 0)
    absent = int(Conflict.NOT_FOUND if complete else Conflict.UNKNOWN)
    code = np.where(has_bytes, int(Conflict.NONE), absent)
    code[is_created & (created > here)] = Conflict.NOT_FOUND
    code[is_spent] = np.where(spent_at == milestone, Conflict.SPENT_IN_MILESTONE, Conflict.SPENT_BEFORE)[
        is_spent
    ]
    wrong = np.flatnonzero(code)[::-1]  # backwards, so that the first one counts
    result = np.zeros(len(place), np.int64)
    result[inputs.transaction[wrong]] = code[wrong]
    return result


def _place(places: pa.StructArray) -> tuple[I64, I64]:
    """(rank in white-flag order, milestone) of every place, -1 where there is none."""
    absent = ~np.asarray(pc.is_valid(places))
    milestone, index = (
        pc.fill_null(places.field(name), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("m", "w")
    )
    return np.where(absent, -1, _order(milestone, index)), np.where(absent, -1, milestone)


def _order(milestone: I64, index: I64) -> I64:
    return (milestone << 31) | index
