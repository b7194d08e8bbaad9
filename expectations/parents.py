"""Expectations of ``parents`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "parents",
    rule("no_self_approval", "parent_id <> message_id", "No message approves itself."),
)
