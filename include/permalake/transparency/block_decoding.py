"""Reading a row back from the bytes of a block, as ``docs/digests.md`` specifies them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from permalake.contracts.rows import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = Context(prec=60)


def decoded_row(block: bytes, columns: Sequence[tuple[str, str]], row: int) -> Row:
    """Return the values of one row of a block, by column.

    Raises:
        ValueError: if the bytes are no such block, or it has no such row.
    """
    reader = _Reader(block)
    rows = reader.number(4)
    if not 0 <= row < rows:
        raise ValueError(f"the block has no row {row}")
    values = {name: _value(reader, kind, rows, row) for name, kind in columns}
    if not reader.is_at_end:
        raise ValueError("the block is longer than its rows")
    return values


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._content)

    def take(self, size: int) -> bytes:
        part = self._content[self._at : self._at + size]
        if len(part) != size:
            raise ValueError("the block ends too early")
        self._at += size
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")


def _value(reader: _Reader, kind: str, rows: int, row: int) -> Any:
    is_there = reader.take((rows + 7) // 8)[row // 8] >> row % 8 & 1
    if kind in ("string", "binary", "list<int>"):
        content = _varying(reader, rows, row, 8 if kind == "list<int>" else 1)
        if kind == "list<int>":
            value: Any = list(struct.unpack(f"<{len(content) // 8}q", content))
        else:
            value = content.decode() if kind == "string" else content
    else:
        width = 16 if kind.startswith("decimal") else 8
        value = _fixed(reader.take(rows * width)[row * width : (row + 1) * width], kind)
    return value if is_there else None


def _varying(reader: _Reader, rows: int, row: int, width: int) -> bytes:
    lengths = struct.unpack(f"<{rows}I", reader.take(4 * rows))
    content = reader.take(sum(lengths) * width)
    start = sum(lengths[:row]) * width
    return content[start : start + lengths[row] * width]


def _fixed(content: bytes, kind: str) -> Any:
    if kind == "double":
        return struct.unpack("<d", content)[0]
    number = int.from_bytes(content, "little", signed=True)
    if kind.startswith("decimal"):
        return Decimal(number).scaleb(-int(kind.rstrip(")").split(",")[1]), _EXACT)
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=number)
    return _EPOCH + timedelta(microseconds=number) if kind == "timestamptz" else number
