"""Requests spelled byte by byte, read with Google's own classes."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from google.cloud.bigtable_v2.types import MutateRowsRequest

from permalake.stores.bigtable_wire import entries, requests, varints

TABLE = "projects/p/instances/i/tables/t"
CELLS = pa.list_(
    pa.struct(
        [
            ("family", pa.string()),
            ("qualifier", pa.string()),
            ("value", pa.binary()),
            ("micros", pa.int64()),
        ]
    )
)
RANDOM = random.Random(5)


def cell(number):
    """A cell whose lengths and time lie on both sides of where another byte is needed."""
    size = RANDOM.choice([0, 1, 66, 127, 128, 130, 20_000])
    micros = RANDOM.choice([0, 1, 127, 128, 1_700_000_000_000_000, 2**63 - 1])
    family = f"Family{number % 7}"
    return {
        "family": family,
        "qualifier": f"Qualität{number}" * RANDOM.choice([1, 20]),
        "value": RANDOM.randbytes(size),
        "micros": micros,
    }


@pytest.fixture(scope="module")
def rows():
    return [
        (f"1:{number:064x}:{number:016d}", [cell(n) for n in range(RANDOM.choice([0, 1, 25]))])
        for number in range(200)
    ]


def batch_of(rows):
    return pa.RecordBatch.from_arrays(
        [pa.array([key for key, _ in rows]), pa.array([cells for _, cells in rows], CELLS)],
        ["row_key", "cells"],
    )


def parsed(written, rows, size):
    """Entries of all requests as Google's classes read them; no request is larger than allowed."""
    found = []
    for first, end, data in requests(TABLE, written, rows, size):
        request = MutateRowsRequest.pb().FromString(data)
        assert request.table_name == TABLE
        assert len(request.entries) == end - first <= rows
        assert len(data) <= size + 100 or end - first == 1
        found += request.entries
    return found


def plain(entry):
    """Key and cells of an entry, which first of all deletes the row."""
    assert entry.mutations[0].WhichOneof("mutation") == "delete_from_row"
    cells = [mutation.set_cell for mutation in entry.mutations[1:]]
    return entry.row_key.decode(), [
        {
            "family": one.family_name,
            "qualifier": one.column_qualifier.decode(),
            "value": one.value,
            "micros": one.timestamp_micros,
        }
        for one in cells
    ]


def test_google_reads_what_was_spelled(rows) -> None:
    assert [plain(entry) for entry in parsed(entries(batch_of(rows)), 70, 300_000)] == rows


def test_columns_are_cells_beside_those_that_are_listed() -> None:
    values = [b"", None, RANDOM.randbytes(300), b"x"]
    listed = [[cell(1)], [], [cell(2), cell(3)], None]
    times = [1, 2**40, 0, 127]
    batch = pa.RecordBatch.from_pydict(
        {
            "row_key": list("abcd"),
            "micros": pa.array(times, pa.int64()),
            "Payload:Bytes": pa.array(values, pa.binary()),
            "Payload:Empty": pa.nulls(4, pa.string()),
            "Payload:Text": pa.array([None, "ü" * 70, "", None]),
            "cells": pa.array(listed, CELLS),
        }
    )
    wanted = []
    for key, micros, data, text, more in zip(
        "abcd", times, values, [None, ("ü" * 70).encode(), b"", None], listed, strict=True
    ):
        columns = {"Bytes": data, "Text": text}
        own = [
            {"family": "Payload", "qualifier": name, "value": value, "micros": micros}
            for name, value in columns.items()
            if value is not None
        ]
        wanted.append((key, own + (more or [])))
    assert [plain(entry) for entry in parsed(entries(batch), 3, 1 << 20)] == wanted
    only = batch.select(["row_key", "micros", "Payload:Text"]).slice(1, 2)
    found = [plain(entry) for entry in parsed(entries(only), 3, 1 << 20)]
    assert [(key, [one["value"] for one in cells]) for key, cells in found] == [
        ("b", [("ü" * 70).encode()]),
        ("c", [b""]),
    ]


def test_a_slice_and_a_choice_of_entries_are_whole(rows) -> None:
    part = batch_of(rows).slice(60, 50)
    written = entries(part)
    assert [plain(entry) for entry in parsed(written[10:30], 7, 1 << 20)] == rows[70:90]
    chosen = written.take(pa.array([49, 3]))
    assert [plain(entry) for entry in parsed(chosen, 7, 1 << 20)] == [rows[109], rows[63]]


def test_rows_without_cells_only_delete(rows) -> None:
    empty = [(key, []) for key, _ in rows[:3]]
    assert [plain(entry) for entry in parsed(entries(batch_of(empty)), 10, 100)] == empty


def test_varints_on_both_sides_of_every_length() -> None:
    values = [value for bits in range(7, 63, 7) for value in (2**bits - 1, 2**bits)]
    for value, data in zip(values, varints(np.array(values)).to_pylist(), strict=True):
        assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data)) == value
        assert [byte >> 7 for byte in data] == [1] * (len(data) - 1) + [0]
