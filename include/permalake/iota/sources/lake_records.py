"""Days of the lake as records of a source: the ids, orders and states in them are claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.hexa import from_hex
from permalake.errors import PermalakeError
from permalake.iota.cone.prove import whole_milestones
from permalake.iota.cone.source_records import Record
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.contracts.ledger import MESSAGES
from permalake.transparency.manifest import Rows
from permalake.transparency.row_order import ordered_rows

_RECORDS = pa.schema(
    [
        ("kind", pa.int8()),
        ("milestone", pa.int32()),
        ("id", pa.binary()),
        ("raw", pa.binary()),
        ("link", pa.binary()),
        ("state", pa.int8()),
        ("conflict", pa.int16()),
        ("number", pa.int32()),
        ("origin", pa.string()),
        ("context", pa.bool_()),
    ]
)
_MESSAGE_COLUMNS = (
    *("message_id", "message", "milestone_index", "white_flag_index", "inclusion_state", "conflict_reason"),
)
_OUTPUTS = tuple(f"{kind}_outputs" for kind in ("basic", "alias", "foundry", "nft", "legacy"))


def whole_groups(rows: Rows, milestones: pa.Table, consumed: pa.Table, protocol: str) -> Iterator[pa.Table]:
    """Yield a day's records in groups of whole milestones, which is what is in memory at once.

    Args:
        rows: Returns the day's rows of a table.
        milestones: All rows of ``milestones``.
        consumed: The records of consumed outputs.
        protocol: Protocol of the network.
    """
    every = pa.concat_tables([_milestone_records(milestones, protocol), consumed])
    at = every["milestone"].to_numpy()
    done = -1
    batches = (
        batch
        for part in ordered_rows(rows(MESSAGES.name), MESSAGES, _MESSAGE_COLUMNS)
        for batch in _block_records(part).combine_chunks().to_batches()
    )
    for blocks in whole_milestones(batches):
        last = int(blocks["milestone"][-1].as_py())
        batch_records = every.filter(pa.array((at > done) & (at <= last)))
        yield _ordered(pa.concat_tables([batch_records, blocks]))
        done = last
    left = every.filter(pa.array(at > done))
    if len(left):
        yield _ordered(left)


def context_records(rows: Rows, milestones: pa.Table, since: int, protocol: str) -> pa.Table:
    """Return the records of milestones from ``since`` on, as context of the day that follows."""
    kept = milestones.filter(pc.greater_equal(milestones["milestone_index"], since))
    messages = rows(MESSAGES.name).to_table(
        columns=list(_MESSAGE_COLUMNS), filter=pc.field("milestone_index") >= since
    )
    records = pa.concat_tables([_milestone_records(kept, protocol), _block_records(messages)])
    index = records.schema.get_field_index("context")
    return _ordered(records.set_column(index, _RECORDS.field("context"), pa.repeat(True, len(records))))


def consumed_records(rows: Rows) -> tuple[pa.Table, bool]:
    """Return the records of a day's consumed outputs, and whether the table itself holds all their bytes.

    Raises:
        PermalakeError: if the bytes of some are not in the day.
    """
    columns = ["output_id", "transaction_id", "milestone_index", "data"]
    table = rows("consumed_outputs").to_table(columns=columns)
    table = table.filter(pc.is_valid(table["transaction_id"]))
    has_bytes = not table["data"].null_count
    if not has_bytes:
        table = _with_bytes(table, rows)
    if lacking := table["data"].null_count:
        raise PermalakeError(
            f"consumed_outputs lacks the bytes of {lacking:,} outputs: the day was built before it had "
            "them; build it again, then check it"
        )
    records = {
        "milestone": table["milestone_index"],
        "id": _from_hex(table["output_id"]),
        "raw": table["data"],
        "link": _from_hex(table["transaction_id"]),
    }
    return _records(Record.CONSUMED, records, len(table)), has_bytes


def _records(kind: Record, columns: Mapping[str, Any], rows: int) -> pa.Table:
    given = {"kind": pa.array(np.full(rows, int(kind), np.int8)), "origin": pa.repeat("", rows), **columns}
    given["context"] = pa.repeat(False, rows)
    return pa.table(
        [
            given[field.name].cast(field.type) if field.name in given else pa.nulls(rows, field.type)
            for field in _RECORDS
        ],
        schema=_RECORDS,
    )


def _milestone_records(rows: pa.Table, protocol: str) -> pa.Table:
    columns = {
        "milestone": rows["milestone_index"],
        "id": _from_hex(rows["milestone_id"]),
        "raw": rows["payload"],
    }
    if protocol == "chrysalis":
        columns["link"] = _from_hex(rows["message_id"])
    return _records(Record.MILESTONE, columns, len(rows))


def _block_records(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    columns = {
        "milestone": rows["milestone_index"],
        "id": _from_hex(rows["message_id"]),
        "raw": rows["message"],
        "state": rows["inclusion_state"],
        "conflict": rows["conflict_reason"],
        "number": rows["white_flag_index"],
    }
    return _records(Record.BLOCK, columns, rows.num_rows)


def _from_hex(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    return from_hex(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)


def _ordered(records: pa.Table) -> pa.Table:
    by = [("milestone", "ascending"), ("kind", "ascending"), ("number", "ascending")]
    return records.take(pc.sort_indices(records, by)).combine_chunks()


def _with_bytes(consumed: pa.Table, rows: Rows) -> pa.Table:
    """Return consumed outputs with the bytes of those that the day itself created."""
    spent_ids = consumed["output_id"]
    ids, data = [], []
    for name in _OUTPUTS:
        if "data" not in IOTA_TABLES[name].names:
            continue
        raw = rows(name).to_table(
            columns=["output_id", "data"], filter=pc.field("output_id").isin(spent_ids.combine_chunks())
        )
        ids += raw["output_id"].to_pylist()
        data += raw["data"].to_pylist()
    at = pc.index_in(spent_ids, value_set=pa.array(ids, pa.string()))
    there = pa.array(data, pa.binary()).take(at.combine_chunks())
    index = consumed.schema.get_field_index("data")
    return consumed.set_column(index, "data", pc.coalesce(consumed["data"].combine_chunks(), there))
