"""The JSON shape of Chronicle archive files, and the records that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from permalake.arrays.cursor import blake2b_rows, load
from permalake.arrays.hexa import from_hex
from permalake.arrays.ragged import concatenated, counts, one, uints
from permalake.arrays.slices import fixed
from permalake.iota.codec import chronicle_json as dialect
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.cone.source_records import RECORD, InclusionState, Record

_SPOILT = "_corrupt_record"
# Variants stay text until their type is known. A message and its metadata are the two elements of one array.
_VARIANT = "struct<type: string, data: string>"
_LINE = f"""milestone_index int, milestone string, messages map<string, array<struct<
    network_id: decimal(20,0), parents: array<string>, payload: {_VARIANT}, nonce: decimal(20,0),
    ledgerInclusionState: string, conflictReason: int>>>"""
_TIMES = "milestone struct<essence: struct<index: int, timestamp: bigint>>"
_INDEXATION = "struct<index: array<smallint>, data: array<smallint>>"
_OUTPUT = "struct<type: string, data: struct<address: struct<data: string>, amount: decimal(20,0)>>"
_TRANSACTION = f"""struct<
    essence: struct<data: struct<
        inputs: array<struct<data: string>>,
        outputs: array<{_OUTPUT}>,
        payload: struct<data: {_INDEXATION}>>>,
    unlock_blocks: array<{_VARIANT}>>"""
_SIGNATURE = "struct<data: struct<public_key: array<smallint>, signature: array<smallint>>>"
# How much of a line that is no record is kept: lines are megabytes long.
_KEPT = 100_000
_STATES = {
    "conflicting": InclusionState.CONFLICTING,
    "included": InclusionState.INCLUDED,
    "notransaction": InclusionState.NO_TRANSACTION,
}

# Records with what they did to the ledger: outputs that a transaction consumed and created, or a receipt
# created.
_CREATED = pa.struct([("output_id", pa.binary()), ("raw", pa.binary())])
PACKED = pa.schema(
    [
        *to_arrow_schema(RECORD),
        pa.field("transaction_id", pa.binary()),
        pa.field("inputs", pa.list_(pa.binary())),
        pa.field("created", pa.list_(_CREATED)),
    ]
)


def milestone_times(spark: SparkSession, files: Iterable[Path]) -> DataFrame:
    """(file, milestone_index, timestamp [unix s]) of the milestones in some files."""
    return (
        _read(spark, files, _TIMES)
        .select(
            "file", F.col("milestone.essence.index").alias("milestone_index"), "milestone.essence.timestamp"
        )
        .where("milestone_index is not null and timestamp is not null")
    )


def packed(spark: SparkSession, files: Iterable[Path], fallback: int) -> DataFrame:
    """Records (:data:`PACKED`) of all lines of some files; what is none belongs to milestone ``fallback``
    unless it tells its own."""
    name = F.element_at(F.split("file", "/"), -1)
    lines = _read(spark, files, f"{_LINE}, {_SPOILT} string").withColumn("file", name)
    schema = from_arrow_schema(PACKED)
    milestones = lines.select(
        "milestone_index", "milestone", _SPOILT, F.lit(fallback).alias("fallback"), "file"
    )
    return (
        _messages(lines)
        .mapInArrow(_pack_messages, schema)
        .unionByName(milestones.mapInArrow(_pack_milestones, schema))
    )


def _read(spark: SparkSession, files: Iterable[Path], schema: str) -> DataFrame:
    reader = spark.read.schema(schema).option("mode", "PERMISSIVE")
    return reader.json([str(file.resolve()) for file in files]).select(
        "*", F.col("_metadata.file_path").alias("file")
    )


def _messages(lines: DataFrame) -> DataFrame:
    """One row per message: the parts of its payload by type, as :func:`_pack_messages` wants them."""
    kind, data = F.col("message.payload.type"), F.col("message.payload.data")
    transaction = F.from_json(F.when(kind == "Transaction", data), _TRANSACTION)
    indexation = F.from_json(F.when(kind == "Indexation", data), _INDEXATION)
    return (
        lines.select("milestone_index", "file", F.explode("messages").alias("id", "pair"))
        .select(
            "milestone_index",
            "file",
            "id",
            F.col("pair")[0].alias("message"),
            F.col("pair")[1].alias("known"),
        )
        .select("*", transaction.alias("transaction"), indexation.alias("indexation"))
        .select(
            F.col("milestone_index").alias("milestone"),
            "file",
            "id",
            "message.network_id",
            "message.parents",
            "message.nonce",
            kind.alias("type"),
            F.when(kind == "Milestone", data).alias("milestone_text"),
            "indexation.index",
            "indexation.data",
            F.transform("transaction.essence.data.inputs", lambda one: one["data"]).alias("inputs"),
            F.transform("transaction.essence.data.outputs", _output).alias("outputs"),
            F.col("transaction.essence.data.payload.data.index").alias("inner_index"),
            F.col("transaction.essence.data.payload.data.data").alias("inner_data"),
            F.transform("transaction.unlock_blocks", _unlock).alias("unlocks"),
            F.lower(F.regexp_replace("known.ledgerInclusionState", "_", "")).alias("state"),
            F.col("known.conflictReason").cast("short").alias("conflict"),
        )
    )


def _output(output: Column) -> Column:
    data = output["data"]
    return F.struct(
        output["type"].alias("kind"), data["address"]["data"].alias("address"), data["amount"].alias("amount")
    )


def _unlock(unlock: Column) -> Column:
    signed = F.from_json(F.when(unlock["type"] == "Signature", unlock["data"]), _SIGNATURE)["data"]
    return F.struct(
        F.when(unlock["type"] == "Reference", unlock["data"]).try_cast("int").alias("reference"),
        signed["public_key"].alias("public_key"),
        signed["signature"].alias("signature"),
    )


def _pack_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.num_rows:
            continue
        column = {name: one(batch.column(name)) for name in batch.schema.names}
        kind = pc.fill_null(column["type"], "")
        is_kind = [pc.equal(kind, name) for name in ("Transaction", "Indexation", "Milestone", "")]
        transactions = dialect.pack_transactions(
            {name: column[name] for name in ("inputs", "outputs", "unlocks")}
            | {"index": column["inner_index"], "data": column["inner_data"]}
        )
        payload = pc.case_when(
            pc.make_struct(*is_kind),
            transactions,
            dialect.pack_indexations(column["index"], column["data"]),
            _milestone_payloads(column["milestone_text"]),
            pa.scalar(b"", pa.binary()),
        )
        raw = dialect.pack_messages(column, payload)
        yield _records(column, raw, transactions)


def _records(
    column: dict[str, pa.Array], raw: pa.BinaryArray, transactions: pa.BinaryArray
) -> pa.RecordBatch:
    rows = len(raw)
    states = pa.array([int(state) for state in _STATES.values()], pa.int8())
    state = states.take(pc.index_in(column["state"], pa.array(list(_STATES))))
    included = pc.and_(
        pc.equal(pc.fill_null(column["type"], ""), "Transaction"),
        pc.equal(pc.fill_null(state, -1), int(InclusionState.INCLUDED)),
    )
    transaction_id = fixed(blake2b_rows(*load(transactions))).cast(pa.binary())
    whole = pc.is_valid(raw)
    return _batch(
        rows,
        {
            "kind": pc.if_else(whole, int(Record.BLOCK), int(Record.MALFORMED)).cast(pa.int8()),
            "milestone": column["milestone"],
            "id": from_hex(column["id"]),
            # A message that is none in that dialect is named by its id.
            "raw": pc.if_else(whole, raw, column["id"].cast(pa.binary())),
            "state": state,
            "conflict": column["conflict"],
            "origin": column["file"],
            "transaction_id": pc.if_else(included, transaction_id, pa.scalar(None, pa.binary())),
            "inputs": _inputs(column["inputs"]),
            "created": _created(column["outputs"], transaction_id),
        },
    )


def _inputs(inputs: pa.Array) -> pa.Array:
    length = counts(inputs)
    offsets = pa.array(np.concatenate([[0], np.cumsum(length)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, from_hex(one(pc.list_flatten(inputs))))


def _created(outputs: pa.Array, transaction_id: pa.BinaryArray) -> pa.Array:
    length = counts(outputs)
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    owner = np.repeat(np.arange(len(length)), length)
    index = np.arange(len(owner)) - offsets[owner]
    ids = concatenated(transaction_id.take(pa.array(owner)), uints(index, 2))
    made = [ids, dialect.pack_outputs(one(pc.list_flatten(outputs)))]
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.StructArray.from_arrays(made, fields=list(_CREATED))
    )


def _milestone_payloads(texts: pa.Array) -> pa.BinaryArray:
    """Milestone payloads, one of which a milestone has: null where the text is none."""
    present = np.flatnonzero(pc.is_valid(texts).to_numpy(zero_copy_only=False))
    made: list[bytes | None] = [None] * len(texts)
    for row in present.tolist():
        made[row] = _milestone_payload(texts[row].as_py())
    return pa.array(made, pa.binary())


def _milestone_payload(text: str) -> bytes | None:
    try:
        return dialect.pack_milestone_text(text)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _pack_milestones(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_milestone_record(row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, PACKED)


def _milestone_record(row: dict) -> dict:
    """The record of a line's milestone, or of a line that has none."""
    index, text = row["milestone_index"], row["milestone"]
    raw = _milestone_payload(text) if text and index is not None and row[_SPOILT] is None else None
    record = dict.fromkeys(PACKED.names) | {
        "milestone": row["fallback"] if index is None else index,
        "origin": row["file"],
    }
    if raw is None:
        told = row[_SPOILT] or text or f"milestone {index}"
        return record | {"kind": int(Record.MALFORMED), "raw": told[:_KEPT].encode()}
    return record | {"kind": int(Record.MILESTONE), "raw": raw, "created": _migrated(raw)}


def _migrated(raw: bytes) -> list[dict[str, bytes]]:
    """The outputs that a milestone's receipt creates."""
    try:
        milestone = decode_milestone(raw, "chrysalis")
    except DecodeError:
        return []
    funds = milestone.receipt.funds if milestone.receipt else ()
    return [
        {
            "output_id": milestone.milestone_id + index.to_bytes(2, "little"),
            "raw": b"\0\0" + fund.address + fund.deposit.to_bytes(8, "little"),
        }
        for index, fund in enumerate(funds)
    ]


def _batch(rows: int, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in PACKED]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED)
