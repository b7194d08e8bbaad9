"""Rows of messages that no milestone references yet, as Cassandra has them: with an estimate and a time.

They have no milestone and no state; tables by range of milestones have them in a range of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts.cql import StoreTable
from permalake.contracts.rows import Row
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.decoded_rows import loose_rows
from permalake.iota.permanode import stardust_schema as store
from permalake.iota.tables import message_tables, output_tables
from permalake.iota.tables.decoded_columns import DecodedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNREFERENCED = 2**31 - 1
"""The ``ms_range_id`` of what no milestone references yet."""
_TABLES = {
    table.name: table
    for table in (
        *(store.MESSAGES, store.PARENTS, store.TRANSACTIONS, store.TAGS),
        *(store.BASIC_OUTPUTS, store.ALIAS_OUTPUTS, store.FOUNDRY_OUTPUTS, store.NFT_OUTPUTS),
        store.LEGACY_OUTPUTS,
    )
}


class Seen(NamedTuple):
    """A message that no milestone references yet: raw, with its first estimate and when it was first seen."""

    message: bytes
    estimate: int
    seen_at: datetime


def provisional_rows(
    messages: Mapping[str, Seen], protocol: Protocol, bech32_hrp: str
) -> Iterator[tuple[StoreTable, list[Row]]]:
    """Yield the rows of messages (by id), table by table; each has the table's columns and ``message_id``."""
    if not messages:
        return
    raw = pa.array([seen.message for seen in messages.values()], pa.binary())
    blocks = DecodedRows(loose_rows(raw, protocol, bech32_hrp), 1)
    paying = blocks.where(pc.is_valid(blocks["transaction_id"]))
    made = {
        "messages": message_tables.messages(blocks),
        "parents": message_tables.parents(blocks),
        "transactions": message_tables.transactions(blocks),
        "tags": message_tables.tags(blocks),
        **dict(output_tables.created_outputs(paying)),
    }
    for name, rows in made.items():
        if name in _TABLES:
            table = _TABLES[name]
            yield table, [_row(row, table, messages[row["message_id"]]) for row in rows.to_pylist()]


def keys_of(table: StoreTable, rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the primary keys of rows."""
    return [tuple(row[name] for name in table.key) for row in rows]


def values_of(table: StoreTable, rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the rows' values in the order of the table's columns."""
    return [tuple(row[name] for name in table.columns) for row in rows]


def is_by_range(table: StoreTable) -> bool:
    """Return whether a table's key has a range of milestones, so that no referenced row overwrites these."""
    return "ms_range_id" in table.key


def referenced(rows: DataFrame) -> DataFrame:
    """Return the rows of a table by range that are of referenced messages."""
    from pyspark.sql import functions as F

    return rows.where(F.col("ms_range_id") != UNREFERENCED)


def _row(row: Mapping[str, Any], table: StoreTable, seen: Seen) -> Row:
    provisional: Row = {"inclusion_state": None, "ms_timestamp": seen.seen_at, "is_used": False}
    if is_by_range(table):
        provisional |= {"ms_range_id": UNREFERENCED, "milestone_index": seen.estimate}
    else:
        provisional |= {"est_milestone_index": seen.estimate, "milestone_index": None}
    if (idx := row.get("idx")) is not None:
        provisional["idx"] = idx - 65536 if idx > 32767 else idx
    return {name: provisional.get(name, row.get(name)) for name in (*table.columns, "message_id")}
