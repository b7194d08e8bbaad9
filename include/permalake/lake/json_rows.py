"""Rows of a query as JSON values, by DuckDB type."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from permalake.contracts.rows import Row

Convert = Callable[[Any], Any]


def converter(kind: DuckDBPyType) -> Convert:
    """Return the function that turns an Arrow value of this type into a JSON value.

    Integers of any width are numbers, decimals text without exponent, binary lower-case hex, dates
    ``YYYY-MM-DD``, timestamps RFC 3339 in UTC, doubles numbers (null where JSON has none for them).
    """
    name = kind.id
    if name in _NESTED:
        return _maybe(_NESTED[name](kind))
    return _maybe(_PLAIN.get(name, str))


def _maybe(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def timestamp(value: datetime) -> str:
    """Format a time as RFC 3339 in UTC, with a fraction only if it is not zero."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    text = aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    year, rest = text.split("-", 1)
    fraction = f".{aware.microsecond:06d}".rstrip("0") if aware.microsecond else ""
    return f"{year:0>4}-{rest}{fraction}Z"


def _double(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _children(kind: DuckDBPyType) -> dict[str, DuckDBPyType]:
    # An array's size stands among its children.
    return {name: child for name, child in kind.children if isinstance(child, DuckDBPyType)}


def _list(kind: DuckDBPyType) -> Convert:
    inner = converter(_children(kind)["child"])
    return lambda values: [inner(value) for value in values]


def _struct(kind: DuckDBPyType) -> Convert:
    inner = {name: converter(child) for name, child in _children(kind).items()}
    return lambda value: {name: convert(value.get(name)) for name, convert in inner.items()}


def _map(kind: DuckDBPyType) -> Convert:
    children = _children(kind)
    key, inner = converter(children["key"]), converter(children["value"])
    return lambda pairs: {str(key(name)): inner(value) for name, value in pairs}


_NESTED: dict[str, Callable[[DuckDBPyType], Convert]] = {
    "list": _list,
    "array": _list,
    "struct": _struct,
    "map": _map,
}
_INTEGERS = ("tinyint", "smallint", "integer", "bigint", "hugeint")
_PLAIN: dict[str, Convert] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys([f"u{name}" for name in _INTEGERS], int),
    "boolean": bool,
    "float": _double,
    "double": _double,
    "decimal": lambda value: format(Decimal(value), "f"),
    "blob": lambda value: value.hex(),
    "date": date.isoformat,
    **dict.fromkeys(["timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"], timestamp),
    "timestamp with time zone": timestamp,
    "varchar": str,
}


def json_rows(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], kinds: Sequence[DuckDBPyType]
) -> Iterator[Row]:
    """Yield each row as JSON values by column name."""
    converters = [converter(kind) for kind in kinds]
    for batch in batches:
        columns = [
            [convert(value) for value in column.to_pylist()]
            for column, convert in zip(batch.columns, converters, strict=True)
        ]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def cell(value: Any, null: str = "") -> str:
    """Return a JSON value as the text of a cell; lists and structures are JSON."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
