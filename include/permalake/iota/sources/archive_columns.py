"""Lines of an ``archive_rest`` directory to records, many at once.

This module does the work of :mod:`~permalake.iota.sources.archive_lines`, whole columns at a time, for
lines that all have the shape of their file. That module decides about all other lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json
from pyspark.sql.pandas.types import to_arrow_schema

from permalake.arrays.cursor import U8
from permalake.arrays.hexa import from_hex
from permalake.arrays.slices import slices
from permalake.iota.cone.source_records import INCLUSION_STATES, RECORD, Record

_ARROW = to_arrow_schema(RECORD)
_LARGEST = 2**31 - 1
_LARGEST_CONFLICT = 2**15 - 1
# Python refuses numbers of more digits, and what is nested more deeply than about a thousand levels.
_MOST_DIGITS, _MOST_BRACKETS = 4300, 200
_MANY_DIGITS = re.compile(rb"[0-9]{4301}")
_TEXTS = pa.list_(pa.large_string())
_METADATA = pa.struct(
    [
        ("blockId", pa.large_string()),
        ("messageId", pa.large_string()),
        ("ledgerInclusionState", pa.large_string()),
        ("conflictReason", pa.int64()),
        ("whiteFlagIndex", pa.int64()),
    ]
)
_LINES = {
    Record.MILESTONE: pa.schema(
        [
            ("index", pa.int64()),
            ("milestoneId", pa.large_string()),
            ("rawPayload", pa.large_string()),
            ("messageId", pa.large_string()),
            ("coneSize", pa.int64()),
        ]
    ),
    Record.BLOCK: pa.schema([("milestone", pa.int64()), ("raw", pa.large_string()), ("metadata", _METADATA)]),
    Record.CONSUMED: pa.schema(
        [
            ("milestone", pa.int64()),
            ("outputId", pa.large_string()),
            ("rawOutput", pa.large_string()),
            ("transactionIdSpent", pa.large_string()),
        ]
    ),
    Record.CHANGES: pa.schema(
        [("index", pa.int64()), ("createdOutputs", _TEXTS), ("consumedOutputs", _TEXTS)]
    ),
}
_STATE_NAMES = pa.array(list(INCLUSION_STATES), pa.large_string())
_STATE_CODES = pa.array([int(code) for code in INCLUSION_STATES.values()], pa.int8())


_OPENS, _CLOSES, _END = b"{}\n"
# ``[`` and ``{`` differ in this bit alone.
_SHAPE_OF_BRACKET = ord("[") ^ ord("{")


class UnusualLinesError(ValueError):
    """Raised when a line is not as simple as the others: each is to be read for itself."""


def archive_columns(text: bytes, kind: Record, origin: str) -> pa.RecordBatch:
    """Return the records of whole lines (:data:`permalake.iota.cone.source_records.RECORD`).

    Raises:
        UnusualLinesError: if a line lacks the shape of its file, or may mean something else to another
            reader of JSON.
    """
    parsed, rows = _parsed(text, _LINES[kind])
    columns = _SHAPES[kind](parsed)
    columns |= {"kind": pa.array(np.full(rows, int(kind), np.int8)), "origin": pa.repeat(origin, rows)}
    given = [columns.get(field.name, pa.nulls(rows)).cast(field.type) for field in _ARROW]
    return pa.RecordBatch.from_arrays(given, schema=_ARROW)


def _parsed(text: bytes, schema: pa.Schema) -> tuple[dict[str, pa.Array], int]:
    rows = _lines(text)
    try:
        if not text.isascii():
            text.decode()
        columns = json.read_json(
            pa.BufferReader(text),
            read_options=json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise UnusualLinesError(str(error)) from None
    # A line holds whole objects, as JSON has no ``}`` before a ``{``: as many as lines are one each.
    if columns.num_rows != rows:
        raise UnusualLinesError("a line holds several objects")
    return {name: _joined(columns[name]) for name in schema.names}, rows


def _lines(text: bytes) -> int:
    """Return the number of lines; raise :class:`UnusualLinesError` if one is no simple object."""
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _END)
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    begins = np.append(0, ends[:-1] + 1)
    if not text or (data[begins] != _OPENS).any() or (data[ends - 1] != _CLOSES).any():
        raise UnusualLinesError("a line is no object")
    brackets = np.flatnonzero((data | _SHAPE_OF_BRACKET) == _OPENS)
    if np.diff(np.searchsorted(brackets, ends), prepend=0).max() > _MOST_BRACKETS:
        raise UnusualLinesError("a line is nested")
    for line in np.flatnonzero(ends - begins > _MOST_DIGITS).tolist():
        if _MANY_DIGITS.search(text, begins[line], ends[line]):
            raise UnusualLinesError("a line has a number of many digits")
    if _holds(data, b"NaN") or _holds(data, b"Inf"):
        raise UnusualLinesError("a line may hold what is no number")
    return len(ends)


def _holds(data: U8, word: bytes) -> bool:
    """Return whether a word is there: faster than ``in`` where its first byte is rarer than its last."""
    places = np.flatnonzero(data[: 1 - len(word)] == word[0])
    for at, byte in enumerate(word[1:], 1):
        places = places[data[places + at] == byte]
    return len(places) > 0


def _milestones(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    return {
        "milestone": _required(_number(columns["index"], _LARGEST)),
        "id": _bytes(columns["milestoneId"]),
        "raw": _required(_bytes(columns["rawPayload"])),
        "link": _bytes(columns["messageId"]),
        "number": _number(columns["coneSize"], _LARGEST),
    }


def _blocks(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    metadata = {field.name: pc.struct_field(columns["metadata"], field.name) for field in _METADATA}
    block_id = pc.if_else(pc.equal(metadata["blockId"], ""), None, metadata["blockId"])
    return {
        "milestone": _required(_number(columns["milestone"], _LARGEST)),
        "id": _bytes(pc.coalesce(block_id, metadata["messageId"])),
        "raw": _required(_bytes(columns["raw"])),
        "state": _STATE_CODES.take(pc.index_in(metadata["ledgerInclusionState"], _STATE_NAMES)),
        "conflict": _number(metadata["conflictReason"], _LARGEST_CONFLICT),
        "number": _number(metadata["whiteFlagIndex"], _LARGEST),
    }


def _consumed(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    return {
        "milestone": _required(_number(columns["milestone"], _LARGEST)),
        "id": _required(_bytes(columns["outputId"])),
        "raw": _required(_bytes(columns["rawOutput"])),
        "link": _bytes(columns["transactionIdSpent"]),
    }


def _changes(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    return {
        "milestone": _required(_number(columns["index"], _LARGEST)),
        "raw": _concatenated(columns["createdOutputs"]),
        "link": _concatenated(columns["consumedOutputs"]),
    }


_SHAPES: dict[Record, Callable[[dict[str, pa.Array]], dict[str, pa.Array]]] = {
    Record.MILESTONE: _milestones,
    Record.BLOCK: _blocks,
    Record.CONSUMED: _consumed,
    Record.CHANGES: _changes,
}


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _number(values: pa.Array, largest: int) -> pa.Array:
    fine = pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, largest))
    if not pc.all(fine, skip_nulls=True).as_py() and values.null_count < len(values):
        raise UnusualLinesError("a number is out of range")
    return values


def _bytes(texts: pa.Array) -> pa.Array:
    decoded = from_hex(texts)
    if decoded.null_count != texts.null_count:
        raise UnusualLinesError("a text is not hex")
    return decoded


def _required(values: pa.Array) -> pa.Array:
    if values.null_count:
        raise UnusualLinesError("a field is missing")
    return values


def _concatenated(lists: pa.ListArray) -> pa.Array:
    """Return the bytes of each row's hex texts, one after the other; empty for a missing list."""
    decoded = _required(_bytes(lists.flatten()))
    count = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    size = pc.binary_length(decoded).to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(size)])
    last = np.cumsum(count)
    begin, end = ends[last - count], ends[last]
    data = b"".join(decoded.to_pylist())
    padded = np.frombuffer(data + bytes(128), np.uint8)
    return slices(padded, begin, end - begin)
