"""Expectations of ``milestones`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "milestones",
    rule(
        "date_of_timestamp",
        "date = to_date(timestamp_seconds(timestamp))",
        "date is the UTC date of timestamp.",
    ),
    rule(
        "payload_is_a_milestone",
        "hex(substring(payload, 1, 4)) IN ('01000000', '07000000')",
        "payload starts with a milestone's type.",
    ),
)
