"""Edits of a table's rows, such as a publisher could sign that does not care what follows from its input."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

Edit = Callable[[pa.Table], pa.Table]


def last_row(rows: pa.Table, **values: object) -> int:
    """The last row with these values: cones of the first milestones may refer to what nobody has."""
    listed = list(enumerate(rows.to_pylist()))
    return next(
        at for at, row in reversed(listed) if all(row[name] == value for name, value in values.items())
    )


def changed(rows: pa.Table, at: int, **values: object) -> pa.Table:
    """The rows with other values in one of them; a value may be a function of the former one."""
    listed = rows.to_pylist()
    for name, value in values.items():
        listed[at][name] = value(listed[at][name]) if callable(value) else value
    return pa.Table.from_pylist(listed, schema=rows.schema)


def without(rows: pa.Table, at: int) -> pa.Table:
    """The rows without one of them."""
    return pa.concat_tables([rows.slice(0, at), rows.slice(at + 1)])


def flipped(at: int) -> Callable[[bytes], bytes]:
    """Bytes with one bit changed."""

    def flip(content: bytes) -> bytes:
        place = at % len(content)
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]

    return flip
