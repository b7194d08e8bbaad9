"""A day's analytics: the order of queries, and sums follow their definitions."""

import pyarrow as pa
import pytest

from permalake.iota.tables.day_sums import SUMS, tag_family, tag_text
from permalake.iota.tables.day_tables import analytics_tables
from permalake.pipeline.day_queries import levels, names_in


@pytest.mark.fast
def test_queries_come_in_groups_that_read_earlier_ones() -> None:
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
def test_text_and_family_of_a_tag(tag, text, family) -> None:
    assert tag_text(tag.hex()) == text
    assert tag_family(text) == family


@pytest.mark.fast
def test_sums_have_a_date_and_whole_numbers() -> None:
    for schema in SUMS.values():
        assert schema.field("date").type == pa.date32()
        assert {field.type for field in schema} <= {pa.date32(), pa.string(), pa.int64()}
