"""Rows as JSON, CSV or a table on the screen, by DuckDB type."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from permalake.cli.output import Format
from permalake.hostile_text import escaped, shown

Convert = Callable[[Any], Any]
_SCREEN_ROWS = 1000
_SCREEN_WIDTH = 72
_WIDE = 100_000
# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


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


def rows(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], kinds: Sequence[DuckDBPyType]
) -> Iterator[dict[str, Any]]:
    """Yield each row as JSON values by column name."""
    converters = [converter(kind) for kind in kinds]
    for batch in batches:
        columns = [
            [convert(value) for value in column.to_pylist()]
            for column, convert in zip(batch.columns, converters, strict=True)
        ]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def plain(value: Any) -> Any:
    """Return a Python value as a JSON value, for rows that do not come from a query."""
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.hex() if isinstance(value, bytes) else value


def write(
    records: Iterable[dict[str, Any]], names: Sequence[str], form: Format, out: IO[str], log: IO[str]
) -> None:
    """Write all records to ``out``, and remarks for the reader to ``log``.

    What a terminal would obey is marked in tables, and in CSV and JSON that a terminal shows.
    """
    writers = {"json": _write_json, "csv": _write_csv, "sheet": _write_sheet, "table": _write_table}
    writers[form](records, names, out, log)


def _write_json(
    records: Iterable[dict[str, Any]], _names: Sequence[str], out: IO[str], _log: IO[str]
) -> None:
    before, is_terminal = "[", out.isatty()
    for record in records:
        text = json.dumps(record, ensure_ascii=False)
        out.write(before + (escaped(text) if is_terminal else text))
        before = ",\n "
    out.write("[]\n" if before == "[" else "]\n")


def _write_csv(records: Iterable[dict[str, Any]], names: Sequence[str], out: IO[str], _log: IO[str]) -> None:
    writer, is_terminal = csv.writer(out, lineterminator="\n"), out.isatty()
    writer.writerow(names)
    for record in records:
        cells = [_cell(record[name]) for name in names]
        writer.writerow([shown(cell, sys.maxsize) for cell in cells] if is_terminal else cells)


def _write_sheet(records: Iterable[dict[str, Any]], names: Sequence[str], out: IO[str], log: IO[str]) -> None:
    """Write CSV for a spreadsheet: a cell that it would take for a formula begins with an apostrophe."""
    texts = ({name: _no_formula(value) for name, value in record.items()} for record in records)
    _write_csv(texts, [_no_formula(name) for name in names], out, log)


def _no_formula(value: Any) -> Any:
    is_text = isinstance(value, str) and not _NUMBER.fullmatch(value)
    return f"'{value}" if is_text and value.startswith(_FORMULA) else value


def _write_table(records: Iterable[dict[str, Any]], names: Sequence[str], out: IO[str], log: IO[str]) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # A file or pipe gets every column, each row on one line.
    console = Console(file=out, width=None if out.isatty() else _WIDE)
    total, lines = 0, []
    for total, record in enumerate(records, start=1):
        if total <= _SCREEN_ROWS:
            lines.append([_shortened(_cell(record[name], null="null")) for name in names])
    heads = [shown(name) for name in names]
    widths = [max(map(cell_len, column)) for column in zip(heads, *lines, strict=True)]
    kept = _fitting(widths, console.width)
    grid = Table()
    for at in kept:
        grid.add_column(Text("…" if at is None else heads[at]), overflow="fold")
    for line in lines:
        grid.add_row(*[Text("…" if at is None else line[at]) for at in kept])
    console.print(grid)
    if None in kept:
        log.write(f"{len(kept) - 1} of {len(names)} columns shown; --format json or csv gives all\n")
    if total > _SCREEN_ROWS:
        log.write(f"{total} rows, the first {_SCREEN_ROWS} shown; --format json or csv gives all\n")


def _fitting(widths: Sequence[int], screen: int) -> list[int | None]:
    """Return the columns, by position, that a screen has room for; None stands for those left out between.

    The first columns and the last ones stay, in turn, and two at least: the screen wraps these.
    """
    borders = 3
    if sum(widths) + borders * len(widths) + 1 <= screen or len(widths) <= 2:
        return list(range(len(widths)))
    room = screen - 1 - (1 + borders)
    head: list[int | None] = []
    tail: list[int | None] = []
    left, right = 0, len(widths) - 1
    while left <= right:
        is_head = len(head) <= len(tail)
        at = left if is_head else right
        room -= widths[at] + borders
        if room < 0 and len(head) + len(tail) >= 2:
            break
        if is_head:
            head.append(left)
            left += 1
        else:
            tail.insert(0, right)
            right -= 1
    return [*head, None, *tail] if left <= right else [*head, *tail]


def _cell(value: Any, null: str = "") -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _shortened(text: str) -> str:
    head = shown(text[:_SCREEN_WIDTH], sys.maxsize)
    return head if len(text) <= _SCREEN_WIDTH else f"{head}… ({len(text)} characters)"
