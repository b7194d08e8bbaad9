"""The digest of a day's rows: as specified, whatever the files are like."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from hashlib import sha256
from itertools import pairwise

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permalake.contracts.schema import Column, Table
from permalake.transparency import merkle, row_order
from permalake.transparency.block_encoding import BLOCK_ROWS, encode_block
from permalake.transparency.digest import canonical_json, table_digest
from support.second_verifier import second_verifier

KINDS = ("int", "long", "double", "string", "binary", "date", "timestamptz", "decimal(38,8)", "list<int>")
WIDE = Table(
    "wide",
    "iota",
    "A column of each type.",
    (
        Column("number", "long", "Key."),
        *(Column(f"c{at}", kind, kind, required=False) for at, kind in enumerate(KINDS)),
        Column("fetched_at", "timestamptz", "A clock."),
    ),
    key=("number", "date"),
    sort=("number",),
    first_value=("fetched_at",),
)
VALUES = (
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.binary(max_size=12),
    st.dates(),
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda at: at.replace(tzinfo=UTC)),
    st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-8, Context(prec=60))),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4),
)
ROW = st.tuples(*(st.none() | one for one in VALUES))


def table_of(rows):
    columns = {
        "number": list(range(len(rows))),
        **{f"c{at}": [row[at] for row in rows] for at in range(len(KINDS))},
        "fetched_at": [datetime(2024, 1, 1, tzinfo=UTC)] * len(rows),
        "date": [date(2024, 1, 1)] * len(rows),
    }
    return pa.table(columns, schema=WIDE.nullable)


def test_a_block_has_the_bytes_that_the_specification_names() -> None:
    rows = pa.table(
        {"n": pa.array([1, None], pa.int32()), "t": pa.array(["ä", None]), "d": [date(1970, 1, 2)] * 2}
    )
    expected = (
        struct.pack("<I", 2)
        + b"\1"
        + struct.pack("<qq", 1, 0)
        + b"\1"
        + struct.pack("<II", 2, 0)
        + "ä".encode()
        + b"\3"
        + struct.pack("<qq", 1, 1)
    )
    assert encode_block(rows, [("n", "int"), ("t", "string"), ("d", "date")]) == expected


@given(st.lists(ROW, max_size=600 // len(KINDS)))
def test_values_of_every_type_are_encoded_as_the_second_verifier_does(rows) -> None:
    table = table_of(rows)
    made = table_digest(ds.dataset(table), WIDE)
    assert made.root == second_verifier().root_of(table, made.columns, list(made.order)).hex()


@pytest.mark.parametrize(
    "count", [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 5 * BLOCK_ROWS + 7, 40_000]
)
def test_files_and_their_order_do_not_matter(tmp_path, count) -> None:
    table = table_of(
        [(at, at, 0.5, str(at), b"x" * (at % 5), None, None, Decimal(at), [at]) for at in range(count)]
    )
    whole = table_digest(ds.dataset(table), WIDE)
    cuts = sorted({0, count // 3, count // 2, count})
    parts = [table.slice(start, end - start) for start, end in pairwise(cuts)]
    for at, part in enumerate(reversed(parts)):
        pq.write_table(part, tmp_path / f"{at}.parquet", row_group_size=1_000)
    places = [str(file) for file in tmp_path.iterdir()]
    files = ds.dataset(places or table, **({"schema": table.schema} if places else {}))
    shuffled = table.take(pa.array(random.Random(1).sample(range(count), count), pa.int64()))
    assert {table_digest(files, WIDE), table_digest(ds.dataset(shuffled), WIDE)} == {whole}
    assert whole.rows == count


CHOICES = (
    [None, -1, 0, 7],
    [None, -(2**40), 3],
    [0.5],
    [None, "", "Z", "a", "ä", "\U0001f600"],
    [None, b"", b"\x00", b"\x7f", b"\xff"],
    [None, date(1960, 1, 1), date(2024, 1, 1)],
    [None, datetime(1960, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)],
    [None, Decimal(-1), Decimal(2)],
    [[1]],
)


def rows_of_few_values(seed, *, nulls):
    chance = random.Random(seed)
    choices = [[value for value in values if nulls or value is not None] for values in CHOICES]
    return [tuple(chance.choice(values) for values in choices) for _ in range(700)]


@pytest.mark.parametrize("lead", [0, 1, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("nulls", [False, True])
def test_files_that_overlap_are_merged_as_they_would_be_sorted(lead, nulls, tmp_path, monkeypatch) -> None:
    """By whatever type they are sorted; with nulls, which the merge leaves to the sort, as well."""
    contract = replace(WIDE, sort=(f"c{lead}", *WIDE.sort))
    table = table_of(rows_of_few_values(lead, nulls=nulls))
    whole = table_digest(ds.dataset(table), contract)
    chance = random.Random(lead)
    owner = [chance.randrange(4) for _ in range(len(table))]
    for at in range(4):
        part = table.filter(pa.array([one == at for one in owner]))
        pq.write_table(part.sort_by(f"c{lead}"), tmp_path / f"{at}.parquet", row_group_size=50)
    files = ds.dataset([str(tmp_path / f"{at}.parquet") for at in range(4)], schema=table.schema)
    assert table_digest(files, contract) == whole
    monkeypatch.setattr(row_order, "_FEW", 0)
    monkeypatch.setattr(row_order, "_BATCH_ROWS", 40)
    sorted_by_duckdb = row_order._sorted
    monkeypatch.setattr(row_order, "_sorted", sorted_by_duckdb if nulls else None)
    assert table_digest(files, contract) == whole
    monkeypatch.setattr(row_order, "_MOST_HELD", 0)
    monkeypatch.setattr(row_order, "_sorted", sorted_by_duckdb)
    assert table_digest(files, contract) == whole
    assert whole.root == second_verifier().root_of(table, whole.columns, list(whole.order)).hex()


def test_every_value_counts_but_clocks() -> None:
    rows = [(1, 2, 0.5, "a", b"b", date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), Decimal(1), [1])] * 3
    table = table_of(rows)
    digests = {table_digest(ds.dataset(table), WIDE).hex}
    for at, kind in enumerate(KINDS):
        changed = [*rows[:2], tuple(None if at == place else value for place, value in enumerate(rows[2]))]
        digests.add(table_digest(ds.dataset(table_of(changed)), WIDE).hex)
        assert len(digests) == at + 2, kind
    clock = table.set_column(
        table.schema.get_field_index("fetched_at"),
        "fetched_at",
        pa.array([datetime(2025, 1, 1, tzinfo=UTC)] * 3, table.schema.field("fetched_at").type),
    )
    assert table_digest(ds.dataset(clock), WIDE).hex in digests


def test_a_list_that_holds_a_null_has_no_digest() -> None:
    with pytest.raises(pa.ArrowInvalid, match="a list holds a null"):
        table_digest(ds.dataset(table_of([(*[None] * 8, [1, None])])), WIDE)


def test_names_and_types_of_columns_count() -> None:
    made = table_digest(ds.dataset(table_of([])), WIDE)
    renamed = {**made.document, "columns": [["other", "int"]]}
    del renamed["digest"]
    assert sha256(canonical_json(renamed)).hexdigest() != made.hex


def test_a_row_is_proven_by_its_block_and_a_path() -> None:
    table = table_of([(at, *[None] * 8) for at in range(7 * BLOCK_ROWS)])
    made = table_digest(ds.dataset(table), WIDE)
    blocks = [
        encode_block(table.slice(start, BLOCK_ROWS), made.columns)
        for start in range(0, len(table), BLOCK_ROWS)
    ]
    leaves = [merkle.leaf_hash(block) for block in blocks]
    path = merkle.inclusion_proof(leaves, 3)
    assert merkle.root_of_inclusion(merkle.leaf_hash(blocks[3]), 3, 7, path).hex() == made.root
    assert merkle.root_of_inclusion(merkle.leaf_hash(blocks[2]), 3, 7, path).hex() != made.root
