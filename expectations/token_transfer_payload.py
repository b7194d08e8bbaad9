"""Expectations of ``token_transfer_payload`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "token_transfer_payload",
    rule("fee_of_payload_1", "(payload_id = 1) = (fee IS NOT NULL)", "Payload 1 has a fee."),
    rule(
        "sender_of_payload_3",
        "(payload_id = 3) = (from_address IS NOT NULL) AND (payload_id = 3) = (app_payload IS NOT NULL)",
        "Payload 3 has a sender and bytes for a contract.",
    ),
    rule(
        "amount_is_u256", "length(amount) <= 78 AND length(fee) <= 78", "Amount and fee are 256-bit integers."
    ),
)
