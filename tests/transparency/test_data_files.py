"""Footers of Parquet files: what they state of rows is so, or is named."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from permalake.transparency.data_files import _holds, footer_fault, rewrite

COLUMNS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "whole": (pa.int32(), [-5, None, 7], [-4, None, 6]),
    "long": (pa.int64(), [2**62, -(2**62), None], [1, 0, None]),
    "exact": (
        pa.decimal128(38, 9),
        [Decimal("-12.5"), None, Decimal(10**25) + Decimal("0.25")],
        [Decimal("-12.25"), None, Decimal(10**25)],
    ),
    "moment": (
        pa.timestamp("us", "UTC"),
        [datetime(2100, 1, 1, tzinfo=UTC), None, None],
        [datetime(2099, 1, 1, tzinfo=UTC), None, None],
    ),
    "day": (
        pa.date32(),
        [date(2022, 9, 28), None, date(1969, 1, 1)],
        [date(2000, 1, 1), None, date(1970, 1, 1)],
    ),
    "text": (pa.string(), ["ü", "a", None], ["zz", "b", None]),
    "bytes": (pa.binary(), [b"\xff", b"", b"\0"], [b"\x7f", b"", b"\1"]),
    "share": (pa.float64(), [-0.5, float("nan"), 0.5], [0.25, float("nan"), 0.0]),
    "flag": (pa.bool_(), [True, None, False], [False, None, False]),
}
"""Type, values and other values of the same length, whose bounds lie within."""


def rows(at: int) -> pa.Table:
    held = {name: pa.array(column[at], column[0]) for name, column in COLUMNS.items()}
    nothing = pa.array([None, None, None], pa.string())
    lists = pa.array([[1, 2], None, []], pa.list_(pa.int32()))
    return pa.table({**held, "nothing": nothing, "list": lists})


@pytest.mark.parametrize("count", [3, 0])
def test_what_we_write_states_what_is_so(tmp_path, count) -> None:
    pq.write_table(rows(1).slice(0, count), tmp_path / "file", row_group_size=2)
    assert footer_fault(tmp_path / "file") is None
    rewrite(tmp_path / "file", tmp_path / "again", rows(1).schema, rows(1).schema.names)
    assert footer_fault(tmp_path / "again") is None
    assert pq.read_table(tmp_path / "again").schema == rows(1).schema
    assert str(pq.read_table(tmp_path / "again").to_pylist()) == str(rows(1).slice(0, count).to_pylist())


@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_that_rows_do_not_have_are_named_and_gone_once_they_are_written_anew(tmp_path, name) -> None:
    """A file's rows before the footer of another one, whose pages are as long."""
    parts = []
    for at in (1, 2):
        held = rows(at).select([name])
        pq.write_table(held, tmp_path / "file", compression="none", use_dictionary=False)
        content = (tmp_path / "file").read_bytes()
        end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        parts.append((content[:end], content[end:]))
    (tmp_path / "file").write_bytes(parts[0][0] + parts[1][1])
    assert f"bounds or nulls of {name} " in str(footer_fault(tmp_path / "file"))
    rewrite(tmp_path / "file", tmp_path / "again", held.schema, [name])
    assert footer_fault(tmp_path / "again") is None
    assert str(pq.read_table(tmp_path / "again").to_pylist()) == str(rows(1).select([name]).to_pylist())


def test_either_bound_and_the_number_of_nulls_are_compared() -> None:
    stated = {"has_null_count": True, "null_count": 1, "has_min_max": True, "min_raw": 1, "max_raw": 9}
    changes: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"min_raw": 0, "max_raw": 10}, True),
        ({"min_raw": 2}, False),
        ({"max_raw": 8}, False),
        ({"null_count": 0}, False),
        ({"min_raw": float("nan")}, False),
        ({"has_min_max": False, "min_raw": None}, True),
    ]
    for change, holds in changes:
        assert _holds(SimpleNamespace(**{**stated, **change}), 1, [1, 4, 9]) is holds, change


@pytest.mark.parametrize("held", [{"write_page_index": True}, {"bloom_filter_options": {"text": True}}])
def test_what_is_not_compared_is_not_there(tmp_path, held) -> None:
    pq.write_table(rows(1), tmp_path / "file", **held)
    assert "an index of pages or a Bloom filter of " in str(footer_fault(tmp_path / "file"))
