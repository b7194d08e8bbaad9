"""Expectations of ``message_publication`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "message_publication",
    rule(
        "key_of_parts",
        "row_key = concat_ws(':', emitter_chain, emitter_address, "
        "lpad(string(sequence), greatest(16, length(string(sequence))), '0'))",
        "row_key is emitter chain, emitter address and padded sequence.",
    ),
    rule(
        "date_of_timestamp",
        "date = to_date(timestamp) OR timestamp < TIMESTAMP'2020-08-01 00:00:00Z'",
        "date is that of the body's timestamp, where it has one.",
    ),
    rule(
        "sequence_is_u64",
        "sequence BETWEEN 0 AND 18446744073709551615",
        "sequence is an unsigned 64-bit integer.",
    ),
    rule("nonce_is_u32", "nonce BETWEEN 0 AND 4294967295", "nonce is an unsigned 32-bit integer."),
)
