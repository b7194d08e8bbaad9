"""Compares a table's rows with expected rows in JSON Lines.

In an expected row ``_opt`` means that the row may be absent, ``_dc`` lists columns that are not compared, and
``_alt`` gives other accepted values by column.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON Lines file, plain or gzip."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.decode().splitlines()]


def differences(actual: Iterable[Row], expected: Iterable[Row], key: Sequence[str]) -> list[str]:
    """One line per row that is missing, too many, or different."""
    found = _by_key(actual, key)
    wanted = _by_key(expected, key)
    lines = [f"unexpected {at}" for at in found if at not in wanted]
    for at, rows in wanted.items():
        have = found.get(at, [])
        required = [row for row in rows if not row.get("_opt")]
        if len(have) < len(required):
            lines.append(f"missing {at}")
        if len(have) > len(rows):
            lines.append(f"twice {at}")
        for one in have[: len(rows)]:
            faults = min((list(_unlike(one, row)) for row in rows), key=len)
            lines += [f"{at} {fault}" for fault in faults]
    return lines


def _by_key(rows: Iterable[Row], key: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    keyed: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        keyed.setdefault(tuple(_plain(row[name]) for name in key), []).append(row)
    return keyed


def _unlike(actual: Row, expected: Row) -> Iterator[str]:
    for name, value in expected.items():
        if name.startswith("_") or name not in actual or name in expected.get("_dc", ()):
            continue
        have = _plain(actual[name])
        accepted = [value, *expected.get("_alt", {}).get(name, ())]
        if not any(_same(have, _plain(one)) for one in accepted):
            yield f"{name}: {have!r}, not {value!r}"


def _same(have: Any, want: Any) -> bool:
    if isinstance(have, Decimal) and want is not None:
        return have == Decimal(want)
    return have == want


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, dt.datetime):
        utc = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value
