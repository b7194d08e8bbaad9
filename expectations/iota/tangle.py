"""Milestones and messages."""

from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "milestones",
        rule(
            "payload_is_a_milestone",
            "substring(hex(payload), 1, 8) IN ('01000000', '07000000')",
            "payload starts with a milestone's type.",
        ),
    ),
    suite(
        "messages",
        rule(
            "reason_only_of_conflicts",
            "conflict_reason = 0 OR inclusion_state = 0",
            "Only a conflicting message has a conflict reason.",
        ),
        rule("message_not_empty", "octet_length(message) > 0", "message holds bytes."),
    ),
    suite("parents", rule("no_self_approval", "parent_id <> message_id", "No message approves itself.")),
    suite("tags", rule("tag_length", "length(tag) <= 128", "A tag has at most 64 bytes.")),
    suite(
        "transactions",
        rule(
            "input_length",
            "variant <> 'input' OR octet_length(data) = 35",
            "An input has 35 bytes: kind, transaction id, index.",
        ),
        rule("data_not_empty", "octet_length(data) > 0", "data holds bytes."),
    ),
)
