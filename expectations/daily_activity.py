"""Expectations of ``daily_activity`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "daily_activity",
    rule(
        "payloads_are_states",
        "no_payload_count + tagged_data_count + transaction_payload_count + milestone_payload_count "
        "+ treasury_transaction_count = confirmed_count + conflicting_count + no_transaction_count",
        "Messages by payload are as many as messages by state.",
    ),
    rule(
        "buckets_add_up",
        "aggregate(input_buckets, 0, (total, n) -> total + n) = confirmed_count "
        "AND aggregate(output_buckets, 0, (total, n) -> total + n) = confirmed_count",
        "Every included transaction is in one bucket of inputs and one of outputs.",
    ),
    rule(
        "largest_within_all",
        "max_milestone_bytes <= message_bytes AND message_bytes <= max_milestone_bytes * milestone_count",
        "The largest milestone is within the day's bytes, and no milestone is larger.",
    ),
    rule("moved_within_booked", "moved_tokens <= booked_tokens", "No more moved than was booked."),
)
