"""The first row in which two versions of a table's day differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.engine.connection import connect
from permalake.transparency.digest import counted_columns

_LONGEST = 80
Row = Mapping[str, Any]


def differing_rows(version: ds.Dataset, other: ds.Dataset, table: Table) -> tuple[Row | None, Row | None]:
    """Return the first row, in the digest's order, that the versions do not share: that of each.

    Both where the same key has other values; None on the side that lacks the row.
    """
    names = [name for name, _ in counted_columns(table)]
    order = table.order
    listed = ", ".join(f'"{name}"' for name in names)
    by = ", ".join(f'"{name}" ASC NULLS FIRST' for name in order)
    with connect() as connection:
        connection.register("one", version)
        connection.register("other", other)

        def lacking(here: str, there: str) -> Row | None:
            query = f"SELECT {listed} FROM {here} EXCEPT SELECT {listed} FROM {there} ORDER BY {by} LIMIT 1"  # noqa: S608
            rows: list[Row] = connection.sql(query).to_arrow_table().to_pylist()
            return rows[0] if rows else None

        first, second = lacking("one", "other"), lacking("other", "one")
    if first is None or second is None or place(first, order) == place(second, order):
        return first, second
    return (first, None) if place(first, order) < place(second, order) else (None, second)


def key_text(row: Row, table: Table) -> str:
    """Return the values that order a row, in words."""
    return ", ".join(f"{name} {value_text(row[name])}" for name in table.order)


def value_text(value: object) -> str:
    """Return a value as a line shows it."""
    text = f"0x{value.hex()}" if isinstance(value, bytes) else "null" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def place(row: Row, order: tuple[str, ...]) -> list[tuple[bool, Any]]:
    """Return where a row stands in an order, nulls first."""
    return [(row[name] is not None, row[name]) for name in order]
