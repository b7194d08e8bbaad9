"""Lake tables as typed rows and as Spark frames, from expected rows in JSON Lines."""

from __future__ import annotations

import datetime as dt
import functools
import gzip
import json
from decimal import Decimal

from permalake.iota.codec.milestones import milestone_id
from support.own_copies import copied

_COUNTS = ("native_token_count", "state_index", "foundry_counter", "serial_number")
_TOKENS = ("minted_tokens", "melted_tokens", "maximum_supply", "newly_minted", "newly_melted")
_LATER = {"message_id": "00" * 32, **dict.fromkeys(_COUNTS, 0), **dict.fromkeys(_TOKENS, "0")}
"""Required columns of outputs that are younger than the files; no store reads them."""


@copied
def read(path):
    """Rows of ``path``.jsonl.gz; none when there is no such file."""
    file = path.with_name(path.name + ".jsonl.gz")
    if not file.exists():
        return []
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


def frame(spark, contract, folder, whole=lambda name, row: row, days=None):
    """Frame of a lake table, of the rows that :func:`typed` returns."""
    rows = [tuple(row.values()) for row in typed(contract, folder, whole, days)]
    return spark.createDataFrame(rows, contract.spark) if rows else spark.createDataFrame([], contract.spark)


def typed(contract, folder, whole=lambda name, row: row, days=None):
    """Rows of a lake table with the contract's columns; ``whole`` mends a row before it is typed, ``days``
    (milestone -> date) gives rows their date where the file has none."""
    rows = []
    for read_row in read(folder / contract.name):
        row = whole(contract.name, read_row)
        if "date" not in row and days:
            row["date"] = days[row["milestone_index"]]
        if contract.name == "milestones":
            row["milestone_id"] = milestone_id(bytes.fromhex(row["payload"]))
        for column in contract.columns:
            if column.required and row.get(column.name) is None:
                later = creators(folder).get(row["output_id"][:64]) if column.name == "message_id" else None
                row[column.name] = later or _LATER.get(column.name)
        rows.append({column.name: _typed(column.type, row.get(column.name)) for column in contract.columns})
    return rows


@functools.cache
def creators(folder):
    """Transaction -> the message that booked it; the files' outputs do not name it."""
    return {
        row["transaction_id"]: row["message_id"]
        for row in read(folder / "transactions")
        if row["inclusion_state"] == 1
    }


def _typed(kind, value):
    if value is None:
        return None
    if kind == "binary":
        return bytes.fromhex(value)
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind == "timestamptz":
        if isinstance(value, int):
            return dt.datetime.fromtimestamp(value, dt.UTC)
        return dt.datetime.fromisoformat(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    return value
