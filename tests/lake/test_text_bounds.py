"""Bounds of text and bytes hold for every value, whatever text it is; else there is none."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, NestedField, StringType

from permalake.lake.catalog import open_table
from permalake.lake.task_files import TaskFiles, WrittenFile
from permalake.lake.text_bounds import text_bounds
from permalake.wormhole.contracts import WORMHOLE_TABLES
from support.lakes import DAY1

SCHEMA = Schema(NestedField(1, "text", StringType()), NestedField(2, "data", BinaryType()))
# Around every boundary of Unicode and of UTF-8's lengths; U+10FFFF is the last character.
EDGES = "\0\x7f\x80\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U0010fffe\U0010ffff"
CHARACTERS = st.sampled_from(EDGES + "az")
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=40),
    st.builds(str.__mul__, CHARACTERS, st.integers(14, 18)),
    st.builds(lambda text, end: "z" * text + end, st.integers(13, 17), st.text(CHARACTERS, max_size=4)),
    st.just("z" * 5000),
)
GROUPS = st.lists(st.lists(st.none() | TEXTS, min_size=1, max_size=5), min_size=1, max_size=4)
LENGTHS = st.sampled_from(["truncate(1)", "truncate(2)", "truncate(16)", "full"])


def bounds_of(groups: list[list[str | None]], mode: str) -> dict[int, tuple[bytes, bytes | None]]:
    target = io.BytesIO()
    arrow = pa.schema([("text", pa.large_string()), ("data", pa.large_binary())])
    with pq.ParquetWriter(target, arrow) as writer:
        for values in groups:
            data = [None if value is None else value.encode() + b"\xff" for value in values]
            writer.write_table(pa.table({"text": values, "data": data}, schema=arrow))
    plan = compute_statistics_plan(SCHEMA, {"write.metadata.metrics.default": mode})
    return text_bounds(pq.read_metadata(target), plan, parquet_path_to_id_mapping(SCHEMA))


@settings(max_examples=400)
@given(GROUPS, LENGTHS)
@example([["z" * 15 + "\ud7fftail"]], "truncate(16)")
@example([["\U0010ffff" * 17]], "truncate(16)")
@example([["m"], ["z" * 5000], [None]], "truncate(16)")
def test_no_value_lies_outside_its_bounds(groups: list[list[str | None]], mode: str) -> None:
    values = [value for group in groups for value in group if value is not None]
    bounds = bounds_of(groups, mode)
    for field, written in ((1, [v.encode() for v in values]), (2, [v.encode() + b"\xff" for v in values])):
        if field in bounds:
            lower, upper = bounds[field]
            assert lower <= min(written)
            assert upper is None or max(written) <= upper
    if 1 in bounds:
        assert all(bound is None or bound.decode() is not None for bound in bounds[1])


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("z" * 15 + "\ud7fftail", "z" * 15 + "\ue000"),
        ("z" * 15 + "\uffff!", "z" * 15 + "\U00010000"),
        ("z" * 15 + "\U0010ffff!", "z" * 14 + "{"),
        ("\U0010ffff" * 17, None),
        ("z" * 16, "z" * 16),
    ],
)
def test_an_upper_bound_is_the_next_text_there_is(text: str, upper: str | None) -> None:
    bounds = bounds_of([[text]], "truncate(16)")
    assert bounds[1] == (text[:16].encode(), None if upper is None else upper.encode())


def test_a_reader_finds_what_long_and_awkward_names_stand_in(lake) -> None:
    contract = WORMHOLE_TABLES["asset_meta_payload"]
    names = ["a", "z" * 15 + "\ud7fftail", "y" * 5000]
    attempt = lake.begin("wormhole", DAY1, DAY1, "run")
    (target,) = attempt.targets([contract])
    small = replace(target, properties={**target.properties, "write.parquet.row-group-size-bytes": "1"})
    tasks = TaskFiles([small], {})
    for place, name in enumerate(names):
        filled = {column.name: None for column in contract.columns} | {"date": DAY1, "name": name}
        filled |= {"row_key": f"2:{place:064x}:{place:016d}", "payload_id": 2, "token_chain": 2}
        filled |= {"token_address": "0" * 64, "decimals": 8, "symbol": name}
        tasks.add(contract.name, pa.Table.from_pylist([filled], contract.arrow))
    told = [file.to_text() for file in tasks.complete()]
    attempt.stage_files(map(WrittenFile.from_text, told), [contract])
    table = open_table(attempt.staged.locations()[contract.name])
    for name in names:
        assert table.scan(row_filter=f"name = '{name}'").to_arrow()["name"].to_pylist() == [name]
