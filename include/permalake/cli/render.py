"""Rows as JSON, CSV or a table on the screen."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import IO, Any

from permalake.cli.output import Format
from permalake.contracts.rows import Row
from permalake.lake.json_rows import cell, timestamp
from permalake.sanitize import escaped, shown

_SCREEN_ROWS = 1000
_SCREEN_WIDTH = 90
"""Characters of a text that a table holds: those of a row key, and not of a payload."""
_SHORT = 20
"""Width to which a screen shortens texts before it leaves columns out; numbers keep theirs."""
_WIDE = 100_000
# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


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


def write(records: Iterable[Row], names: Sequence[str], form: Format, out: IO[str], log: IO[str]) -> None:
    """Write all records to ``out``, and remarks for the reader to ``log``.

    What a terminal would obey is marked in tables, and in CSV and JSON that a terminal shows.
    """
    writers = {"json": _write_json, "csv": _write_csv, "sheet": _write_sheet, "table": _write_table}
    writers[form](records, names, out, log)


def _write_json(records: Iterable[Row], _names: Sequence[str], out: IO[str], _log: IO[str]) -> None:
    before, is_terminal = "[", out.isatty()
    for record in records:
        text = json.dumps(record, ensure_ascii=False)
        out.write(before + (escaped(text) if is_terminal else text))
        before = ",\n "
    out.write("[]\n" if before == "[" else "]\n")


def _write_csv(records: Iterable[Row], names: Sequence[str], out: IO[str], _log: IO[str]) -> None:
    writer, is_terminal = csv.writer(out, lineterminator="\n"), out.isatty()
    writer.writerow(names)
    for record in records:
        cells = [cell(record[name]) for name in names]
        writer.writerow([shown(text, sys.maxsize) for text in cells] if is_terminal else cells)


def _write_sheet(records: Iterable[Row], names: Sequence[str], out: IO[str], log: IO[str]) -> None:
    """Write CSV for a spreadsheet: a cell that it would take for a formula begins with an apostrophe."""
    texts = ({name: _no_formula(value) for name, value in record.items()} for record in records)
    _write_csv(texts, [_no_formula(name) for name in names], out, log)


def _no_formula(value: Any) -> Any:
    is_text = isinstance(value, str) and not _NUMBER.fullmatch(value)
    return f"'{value}" if is_text and value.startswith(_FORMULA) else value


def _write_table(records: Iterable[Row], names: Sequence[str], out: IO[str], log: IO[str]) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # A file or pipe gets every column, each row on one line.
    console = Console(file=out, width=None if out.isatty() else _WIDE)
    total, lines = 0, []
    for total, record in enumerate(records, start=1):
        if total <= _SCREEN_ROWS:
            lines.append([_shortened(cell(record[name], null="null")) for name in names])
    heads = [shown(name) for name in names]
    columns = [list(column) for column in zip(heads, *lines, strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    rooms = _narrowed(widths, [_least(column) for column in columns], console.width)
    lines = [[_elided(text, room) for text, room in zip(line, rooms, strict=True)] for line in lines]
    kept = _fitting(rooms, console.width)
    grid = Table()
    for at in kept:
        grid.add_column(Text("…" if at is None else heads[at]), overflow="fold")
    for line in lines:
        grid.add_row(*[Text("…" if at is None else line[at]) for at in kept])
    console.print(grid)
    if any(rooms[at] < widths[at] for at in kept if at is not None):
        log.write("long texts are shortened in the middle; --format json or csv gives all\n")
    if None in kept:
        log.write(f"{len(kept) - 1} of {len(names)} columns shown; --format json or csv gives all\n")
    if total > _SCREEN_ROWS:
        log.write(f"{total} rows, the first {_SCREEN_ROWS} shown; --format json or csv gives all\n")


def _least(column: Sequence[str]) -> int:
    """Return how narrow a column may become: its head, its numbers and the ends of its texts stay."""
    head, *texts = column
    whole = [len(text) for text in texts if _NUMBER.fullmatch(text)]
    return max(len(head), _SHORT, *whole)


def _narrowed(widths: Sequence[int], least: Sequence[int], screen: int) -> list[int]:
    """Return the widths of columns that a screen shows, the widest ones narrowed first and no further."""
    room = screen - 1 - 3 * len(widths)
    narrow = [min(width, smallest) for width, smallest in zip(widths, least, strict=True)]
    over = sum(widths) - max(room, sum(narrow))
    rooms = list(widths)
    while over > 0:
        at = max(range(len(rooms)), key=lambda place: rooms[place] - narrow[place])
        others = sorted(rooms[place] - narrow[place] for place in range(len(rooms)) if place != at)
        cut = min(over, max(rooms[at] - narrow[at] - (others[-1] if others else 0), 1))
        rooms[at] -= cut
        over -= cut
    return rooms


def _elided(text: str, room: int) -> str:
    """Return a text's two ends where it has not room enough."""
    from rich.cells import cell_len

    if cell_len(text) <= room:
        return text
    tail = (room - 1) // 2
    return f"{text[: room - 1 - tail]}…{text[-tail:]}"


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


def _shortened(text: str) -> str:
    head = shown(text[:_SCREEN_WIDTH], sys.maxsize)
    return head if len(text) <= _SCREEN_WIDTH else f"{head}… ({len(text)} characters)"
