"""Verified VAAs, their signatures, and the daily counts of them."""

from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "message_publication",
        rule(
            "key_of_parts",
            "row_key = concat_ws(':', emitter_chain, emitter_address, lpad(CAST(sequence AS STRING), "
            "CAST(greatest(16, length(CAST(sequence AS STRING))) AS INT), '0'))",
            "row_key is emitter chain, emitter address and padded sequence.",
        ),
        rule(
            "date_of_timestamp",
            "date = CAST(timestamp AS DATE) OR timestamp < TIMESTAMP'2020-08-01 00:00:00Z'",
            "date is that of the body's timestamp, where it has one.",
        ),
    ),
    suite(
        "quorum_state",
        rule("version_1", "substring(hex(signed_vaa), 1, 2) = '01'", "The VAA is of version 1."),
        rule(
            "holds_signatures",
            "octet_length(signed_vaa) >= 6 + 66 + 51",
            "The VAA holds a header, a signature and a body.",
        ),
    ),
    suite("observations", rule("signature_fits", "length(signature) = 130", "A signature is 65 bytes.")),
    suite(
        "messages_daily",
        rule("messages_add_up", "messages = verified + quarantined", "messages = verified + quarantined."),
    ),
)
