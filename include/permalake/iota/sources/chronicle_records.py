"""Lines of Chronicle archive files to records, with what they did to the ledger, without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from permalake.arrays.cursor import blake2b_rows, load
from permalake.arrays.hexa import from_hex
from permalake.arrays.ragged import combined, concatenated, counts, uints
from permalake.arrays.slices import fixed
from permalake.iota.codec import chronicle_json as dialect
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.receipts import Receipt
from permalake.iota.cone.source_records import INCLUSION_STATES, RECORD, InclusionState, Record
from permalake.iota.sources.archive_lines import UNREADABLE, Row, index_of, load_json, malformed_row, row
from permalake.pipeline.line_files import Damage

_BATCH_MESSAGES = 2_000
_U64 = 2**64
_OUTPUT_KINDS = ("SignatureLockedSingle", "SignatureLockedDustAllowance")
_MAX_TIME = 2**63 - 1
_HEX = frozenset("0123456789abcdefABCDEF")
_STATES = {name.lower(): state for name, state in INCLUSION_STATES.items()}

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
_NUMBERS = pa.list_(pa.int16())
_AMOUNT = pa.decimal128(20, 0)
_OUTPUT = pa.struct([("kind", pa.string()), ("address", pa.string()), ("amount", _AMOUNT)])
_UNLOCK = pa.struct([("reference", pa.int32()), ("public_key", _NUMBERS), ("signature", _NUMBERS)])
# A message: the parts of its payload by type.
MESSAGE = pa.schema(
    [
        ("milestone", pa.int32()),
        ("id", pa.string()),
        ("network_id", _AMOUNT),
        ("parents", pa.list_(pa.string())),
        ("nonce", _AMOUNT),
        ("type", pa.string()),
        ("payload", pa.binary()),
        ("index", _NUMBERS),
        ("data", _NUMBERS),
        ("inputs", pa.list_(pa.string())),
        ("outputs", pa.list_(_OUTPUT)),
        ("inner_index", _NUMBERS),
        ("inner_data", _NUMBERS),
        ("unlocks", pa.list_(_UNLOCK)),
        ("state", pa.int8()),
        ("conflict", pa.int16()),
    ]
)


def milestone_time(line: bytes) -> tuple[int, int] | None:
    """Return (milestone index, time [unix s]) of a line; None when it does not have both."""
    try:
        document = load_json(line)
        index, time = document["milestone_index"], document["milestone"]["essence"]["timestamp"]
        return _whole(index, 2**32), min(_whole(time, _U64), _MAX_TIME)
    except UNREADABLE:
        return None


def packed(lines: Iterable[bytes | Damage], fallback: int) -> Iterator[pa.RecordBatch]:
    """Yield records (:data:`PACKED`, without origin) of lines.

    A line that is none belongs to milestone ``fallback`` unless it names its own.
    """
    waiting: list[Row] = []
    for line in lines:
        records, messages = _line(line, fallback)
        waiting += messages
        if len(waiting) >= _BATCH_MESSAGES:
            yield pack_messages(waiting)
            waiting = []
        yield pa.RecordBatch.from_pylist(records, PACKED)
    if waiting:
        yield pack_messages(waiting)


def _line(line: bytes | Damage, fallback: int) -> tuple[list[Row], list[Row]]:
    """Return the finished records of a line, and its messages to be packed."""
    if isinstance(line, Damage):
        return [malformed_row(line.raw, line.reason, fallback)], []
    try:
        document = load_json(line)
        index = index_of(document["milestone_index"])
        pairs = dict(document["messages"])
        raw = dialect.pack_milestone_text(json.dumps(document["milestone"]))
    except UNREADABLE as error:
        return [malformed_row(line, error, fallback)], []
    records = [row(Record.MILESTONE, index, raw=raw) | {"created": _migrated(raw)}]
    messages = []
    for message_id, pair in pairs.items():
        try:
            messages.append(_message(index, message_id, pair))
        except UNREADABLE as error:
            records.append(malformed_row(_text_of(line, message_id), error, index) | {"milestone": index})
    return records, messages


def _text_of(line: bytes, message_id: str) -> bytes:
    """Return the exact text of a message in a line, from its id to its end."""
    match = re.search(rb'"' + re.escape(message_id.encode()) + rb'"\s*:\s*', line)
    if not match:
        return line
    rest = line[match.end() :].decode("utf-8", "surrogateescape")
    try:
        end = json.JSONDecoder().raw_decode(rest)[1]
    except (ValueError, RecursionError):
        return line
    return line[match.start() : match.end()] + rest[:end].encode("utf-8", "surrogateescape")


def _message(milestone: int, message_id: str, pair: Any) -> Row:
    """Return a row of :data:`MESSAGE`; raise one of :data:`UNREADABLE` when the JSON has another shape."""
    message, metadata = pair
    payload = message.get("payload") or {}
    kind = payload.get("type")
    state = _STATES.get(str(metadata.get("ledgerInclusionState")).replace("_", "").lower())
    conflict = metadata.get("conflictReason")
    documents = {
        "milestone": milestone,
        "id": _id(message_id, 32),
        "network_id": Decimal(_whole(message["network_id"], _U64)),
        "parents": [_id(parent, 32) for parent in message["parents"]],
        "nonce": Decimal(_whole(message["nonce"], _U64)),
        "type": kind,
        "state": None if state is None else int(state),
        "conflict": None if conflict is None else _whole(conflict, 256),
    }
    if kind == "Transaction":
        return documents | _transaction(payload["data"])
    if kind == "Indexation":
        index, data = payload["data"]["index"], payload["data"]["data"]
        return documents | {"index": _numbers(index), "data": _numbers(data)}
    if kind == "Milestone":
        return documents | {"payload": dialect.pack_milestone_text(json.dumps(payload["data"]))}
    if kind is not None:
        raise ValueError(f"payload type {str(kind)[:40]}")
    return documents


def _transaction(data: Any) -> Row:
    essence = data["essence"]["data"]
    inner = (essence.get("payload") or {}).get("data")
    return {
        "inputs": [_id(transaction_input["data"], 34) for transaction_input in essence["inputs"]],
        "outputs": [_output(created) for created in essence["outputs"]],
        "inner_index": _numbers(inner["index"]) if inner else None,
        "inner_data": _numbers(inner["data"]) if inner else None,
        "unlocks": [_unlock(unlock) for unlock in data["unlock_blocks"]],
    }


def _output(document: Any) -> Row:
    data = document["data"]
    if document["type"] not in _OUTPUT_KINDS:
        raise ValueError(f"output type {str(document['type'])[:40]}")
    amount = Decimal(_whole(data["amount"], _U64))
    return {"kind": document["type"], "address": _id(data["address"]["data"], 32), "amount": amount}


def _unlock(document: Any) -> Row:
    if document["type"] == "Reference":
        return {"reference": _whole(document["data"], 2**16)}
    signed = document["data"]["data"]
    return {"public_key": _numbers(signed["public_key"]), "signature": _numbers(signed["signature"])}


def _numbers(values: Any) -> list[int]:
    """Return a list of byte values."""
    if not isinstance(values, list):
        raise TypeError("no list of numbers")
    return list(bytes(values))


def _whole(value: Any, limit: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError("a number is missing, or out of range")
    return value


def _id(text: str, width: int) -> str:
    if len(text) != 2 * width or not set(text) <= _HEX:
        raise ValueError(f"an id that is not {width} bytes of hex")
    return text


def pack_messages(rows: list[Row]) -> pa.RecordBatch:
    """Return the records of some messages."""
    batch = pa.RecordBatch.from_pylist(rows, MESSAGE)
    column = {name: combined(batch.column(name)) for name in batch.schema.names}
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
        column["payload"],
        pa.scalar(b"", pa.binary()),
    )
    return _records(column, dialect.pack_messages(column, payload), transactions)


def _records(
    column: dict[str, pa.Array], raw: pa.BinaryArray, transactions: pa.BinaryArray
) -> pa.RecordBatch:
    state = column["state"]
    included = pc.and_(
        pc.equal(pc.fill_null(column["type"], ""), "Transaction"),
        pc.equal(pc.fill_null(state, -1), int(InclusionState.INCLUDED)),
    )
    transaction_id = fixed(blake2b_rows(*load(transactions))).cast(pa.binary())
    return _batch(
        len(raw),
        {
            "kind": pa.array(np.full(len(raw), int(Record.BLOCK), np.int8)),
            "milestone": column["milestone"],
            "id": from_hex(column["id"]),
            "raw": raw,
            "state": state,
            "conflict": column["conflict"],
            "transaction_id": pc.if_else(included, transaction_id, pa.scalar(None, pa.binary())),
            "inputs": _inputs(column["inputs"]),
            "created": _created(column["outputs"], transaction_id),
        },
    )


def _inputs(inputs: pa.Array) -> pa.Array:
    length = counts(inputs)
    offsets = pa.array(np.concatenate([[0], np.cumsum(length)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, from_hex(combined(pc.list_flatten(inputs))))


def _created(outputs: pa.Array, transaction_id: pa.BinaryArray) -> pa.Array:
    length = counts(outputs)
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    owner = np.repeat(np.arange(len(length)), length)
    index = np.arange(len(owner)) - offsets[owner]
    ids = concatenated(transaction_id.take(pa.array(owner)), uints(index, 2))
    made = [ids, dialect.pack_outputs(combined(pc.list_flatten(outputs)))]
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.StructArray.from_arrays(made, fields=list(_CREATED))
    )


def _migrated(raw: bytes) -> list[dict[str, bytes]]:
    """Return the outputs that a milestone's receipt creates."""
    try:
        milestone = decode_milestone(raw, "chrysalis")
    except DecodeError:
        return []
    receipt: Receipt | None = milestone.receipt
    raws = receipt.outputs("chrysalis") if receipt else []
    return [
        {"output_id": milestone.milestone_id + index.to_bytes(2, "little"), "raw": output}
        for index, output in enumerate(raws)
    ]


def _batch(rows: int, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in PACKED]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED)
