"""Expectations of ``ms_activity`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "ms_activity",
    rule(
        "payloads_are_states",
        "no_payload_count + tagged_data_count + transaction_payload_count + milestone_payload_count "
        "+ treasury_transaction_count = confirmed_count + conflicting_count + no_transaction_count",
        "Messages by payload are as many as messages by state.",
    ),
    rule(
        "input_buckets_add_up",
        "aggregate(input_buckets, 0, (total, n) -> total + n) = confirmed_count",
        "Every included transaction is in one bucket of inputs.",
    ),
    rule(
        "output_buckets_add_up",
        "aggregate(output_buckets, 0, (total, n) -> total + n) = confirmed_count",
        "Every included transaction is in one bucket of outputs.",
    ),
    rule(
        "bytes_within_bytes",
        "tagged_data_bytes + transaction_bytes + milestone_bytes + treasury_transaction_bytes "
        "<= message_bytes",
        "Bytes by payload are no more than all bytes.",
    ),
)
