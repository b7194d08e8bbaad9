"""Expectations of ``date_cache`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "date_cache",
    rule("start_before_end", "start_ms <= end_ms", "The first milestone is not behind the last."),
)
