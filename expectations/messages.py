"""Expectations of ``messages`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "messages",
    rule(
        "reason_only_of_conflicts",
        "conflict_reason = 0 OR inclusion_state = 0",
        "Only a conflicting message has a conflict reason.",
    ),
    rule("message_not_empty", "length(message) > 0", "message holds bytes."),
)
