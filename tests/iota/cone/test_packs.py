"""Records packed for the shuffle: each is in its chunk and in the next that may refer to it, in order."""

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from permalake.iota.cone import packs
from permalake.iota.cone.packs import Chunks, unpacked
from permalake.iota.cone.source_records import RECORD, Record

pytestmark = pytest.mark.fast
SCHEMA = to_arrow_schema(RECORD)
REFERRED = (Record.MILESTONE, Record.BLOCK)

keys = st.tuples(st.integers(0, 400), st.sampled_from(Record))


def batch(records):
    rows = [
        dict.fromkeys(SCHEMA.names)
        | {"kind": int(kind), "milestone": milestone, "raw": bytes(number % 50), "number": number}
        for number, (milestone, kind) in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def expected(rows, chunks):
    """Records by chunk, each as (milestone, kind, number, whether it is context)."""
    found = {chunk: [] for chunk in range(chunks.count)}
    for milestone, kind, number in rows:
        own, near = ((milestone - chunks.first + ahead) // chunks.size for ahead in (0, chunks.look_back))
        if own in found:
            found[own].append((milestone, kind, number, False))
        if near != own and near in found and kind in REFERRED:
            found[near].append((milestone, kind, number, True))
    return {chunk: sorted(own) for chunk, own in found.items() if own}


@given(
    st.lists(keys, max_size=120),
    st.integers(0, 120),
    st.integers(1, 90),
    st.integers(1, 5),
    st.data(),
)
def test_every_record_is_where_it_is_needed(records, first, size, count, data) -> None:
    chunks = Chunks(first, size, count, data.draw(st.integers(0, size)))
    step = data.draw(st.integers(1, 40))
    whole = batch(records)
    made = chunks(whole.slice(at, step) for at in range(0, max(len(records), 1), step))
    moved = [row for one in made for row in one.to_pylist()]
    random.Random(len(moved)).shuffle(moved)
    moved.sort(key=lambda row: (row["chunk"], row["place"]))
    found = {}
    for chunk in {row["chunk"] for row in moved}:
        own = [row for row in moved if row["chunk"] == chunk]
        got = list(unpacked(pa.RecordBatch.from_pylist([row], packs._PACK) for row in own))
        found[chunk] = [row for one in got for row in one.to_pylist()]
    order = {chunk: [(row["milestone"], row["kind"]) for row in rows] for chunk, rows in found.items()}
    assert all(keys == sorted(keys) for keys in order.values())
    named = {
        chunk: sorted((row["milestone"], row["kind"], row["number"], row["context"]) for row in rows)
        for chunk, rows in found.items()
    }
    numbered = [(milestone, int(kind), number) for number, (milestone, kind) in enumerate(records)]
    assert named == expected(numbered, chunks)
    assert all(len(row["raw"]) == row["number"] % 50 for rows in found.values() for row in rows)


def test_a_batch_holds_whole_milestones(monkeypatch) -> None:
    monkeypatch.setattr(packs, "_ROWS", 100)
    records = [(milestone, kind) for milestone in range(200) for kind in (Record.BLOCK,) * 7]
    random.Random(0).shuffle(records)
    [made] = Chunks(0, 200, 1, 40)([batch(records)])
    assert set(made["place"].to_pylist()) == set(range(13))
    got = list(unpacked([made]))
    assert sum(one.num_rows for one in got) == len(records)
    held = [set(one["milestone"].to_pylist()) for one in got]
    assert len(held) == 13
    assert sum(map(len, held)) == 200


def test_nothing_is_packed_of_no_records() -> None:
    [made] = Chunks(10, 5, 2, 1)([batch([])])
    assert made.num_rows == 0
    [made] = Chunks(10, 5, 2, 1)([batch([(9, Record.CHANGES), (20, Record.BLOCK)])])
    assert made.num_rows == 0
    assert list(unpacked([made])) == []
