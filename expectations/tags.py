"""Expectations of ``tags`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "tags",
    rule("date_of_milestone", "date = to_date(ms_timestamp)", "date is the UTC date of ms_timestamp."),
    rule("tag_length", "length(tag) <= 128", "A tag has at most 64 bytes."),
)
