"""A day's analytics: both engines make the same rows, and sums follow their definitions."""

from collections import Counter

import pyarrow as pa
import pytest

from permalake.iota.tables.day_sums import SUMS, tag_family, tag_text
from permalake.iota.tables.day_tables import analytics_tables
from permalake.pipeline.day_queries import levels, names_in
from support.iota_days import SYNTHETIC, V_BYTE_COST, build, coordinator_keys, tangle
from support.iota_queries import by_duckdb

SPANS = {"stardust": ("2022-09-28", "2022-09-30"), "chrysalis": ("2021-05-10", "2021-05-12")}


@pytest.mark.parametrize("protocol", ["stardust", "chrysalis"])
def test_both_engines_make_the_same_rows(spark, tmp_path, protocol):
    built = build(
        spark,
        SYNTHETIC / protocol / "archive",
        *(*SPANS[protocol], tmp_path / "decoded"),
        protocol=protocol,
        hrp=tangle(protocol)["bech32_hrp"],
        keys=coordinator_keys(protocol),
        threshold=2,
    )
    analytics = analytics_tables(V_BYTE_COST)
    base = {name: frame.toArrow() for name, frame in built.tables.items() if name not in analytics}
    made = by_duckdb(base, built.written, V_BYTE_COST)
    assert made.keys() == analytics.keys()
    for name, rows in made.items():
        theirs = built.tables[name].toArrow()
        assert Counter(map(repr, rows.to_pylist())) == Counter(map(repr, theirs.to_pylist())), name
        assert rows.num_rows, name


@pytest.mark.fast
def test_queries_come_in_groups_that_read_earlier_ones():
    queries = analytics_tables()
    found = list(levels(queries))
    assert sorted(name for group in found for name in group) == sorted(queries)
    known = set()
    for group in found:
        for name in group:
            assert names_in(queries[name], queries) <= known
        known |= set(group)
    assert len(found) == 2


@pytest.mark.fast
@pytest.mark.parametrize(
    ("tag", "text", "family"),
    [
        (b"IOTA.live: block", "IOTA.live: block", "IOTA"),
        (b"", "", ""),
        (b"-x", "-x", ""),
        (b"tab\there", None, ""),
        (b"del\x7f", None, ""),
        (b"\xff\xfe", None, ""),
        (b"\xed\xa0\x80", None, ""),  # half of a surrogate pair is no UTF-8
        ("größe 5".encode(), "größe 5", "größe"),
        ("no\u00a0break".encode(), "no\u00a0break", "no\u00a0break"),
        ("\x85next".encode(), "\x85next", "\x85next"),
    ],
)
def test_text_and_family_of_a_tag(tag, text, family):
    assert tag_text(tag.hex()) == text
    assert tag_family(text) == family


@pytest.mark.fast
def test_sums_have_a_date_and_whole_numbers():
    for schema in SUMS.values():
        assert schema.field("date").type == pa.date32()
        assert {field.type for field in schema} <= {pa.date32(), pa.string(), pa.int64()}
