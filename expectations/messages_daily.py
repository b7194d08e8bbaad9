"""Expectations of ``messages_daily`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "messages_daily",
    rule("messages_add_up", "messages = verified + quarantined", "messages = verified + quarantined."),
)
