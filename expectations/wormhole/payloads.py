"""Decoded payloads of VAAs."""

from expectations.common import TEXT_OF_32_BYTES
from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "token_transfer_payload",
        rule("fee_of_payload_1", "(payload_id = 1) = (fee IS NOT NULL)", "Payload 1 has a fee."),
        rule(
            "sender_of_payload_3",
            "(payload_id = 3) = (from_address IS NOT NULL) AND (payload_id = 3) = (app_payload IS NOT NULL)",
            "Payload 3 has a sender and bytes for a contract.",
        ),
        rule(
            "amount_is_u256",
            "length(amount) <= 78 AND length(fee) <= 78",
            "Amount and fee are 256-bit integers.",
        ),
    ),
    suite("asset_meta_payload", TEXT_OF_32_BYTES),
    suite(
        "nft_transfer_payload",
        TEXT_OF_32_BYTES,
        rule("token_id_is_u256", "length(token_id) <= 78", "The token id is a 256-bit integer."),
    ),
    suite(
        "governance_actions",
        rule("module_fits", "length(module) BETWEEN 1 AND 32", "A module's name comes from 32 bytes."),
        rule(
            "fields_of_known_actions",
            "(fields IS NULL) = (action_name IS NULL)",
            "An action has fields where it has a name.",
        ),
    ),
)
