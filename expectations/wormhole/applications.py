"""Applications of messages, what these move, and the relayer's deliveries."""

from expectations.common import NOTIONAL_NEEDS_PRICE, PRICE_IS_WHOLE, REASON_WITHOUT_VALUE
from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "application_messages",
        rule(
            "application_has_layout",
            "(app_id = 'UNKNOWN') = (layout IS NULL)",
            "A known application has a layout, an unknown one has none.",
        ),
        rule(
            "only_known_is_listed",
            "is_listed = 0 OR app_id <> 'UNKNOWN'",
            "A listed contract has an application.",
        ),
        rule("carried_by_another", "carrier_app_id <> app_id", "An application carries messages of others."),
    ),
    suite(
        "application_transfers",
        rule(
            "token_is_whole",
            "(token_chain IS NULL) = (token_address IS NULL) AND (token_chain IS NULL) = (amount IS NULL)",
            "A token comes with its chain and an amount.",
        ),
        rule(
            "amounts_are_u256",
            "length(amount) <= 78 AND length(coalesce(fee, '')) <= 78",
            "Amount and fee are 256-bit integers.",
        ),
        rule(
            "bridged_by_others",
            "in_token_transfers = 0 OR app_id <> 'PORTAL_TOKEN_BRIDGE'",
            "The token bridge's own transfers are not listed here.",
        ),
    ),
    suite(
        "relayer_deliveries",
        rule(
            "delivery_is_whole",
            "(kind = 'delivery') = (target_address IS NOT NULL) "
            "AND (kind = 'delivery') = (refund_chain IS NOT NULL) "
            "AND (kind = 'delivery') = (refund_address IS NOT NULL) "
            "AND (kind = 'delivery') = (refund_delivery_provider IS NOT NULL) "
            "AND (kind = 'delivery') = (extra_receiver_value IS NOT NULL)",
            "A delivery has target and refund, a redelivery has not.",
        ),
        rule(
            "only_redeliveries_repeat",
            "delivered_row_key IS NULL OR kind = 'redelivery'",
            "A redelivery names what it repeats.",
        ),
        rule(
            "gas_is_whole",
            "(gas_limit IS NULL) = (refund_per_gas_unused IS NULL)",
            "A gas limit comes with the refund of unused gas.",
        ),
        rule(
            "values_are_u256",
            "length(requested_receiver_value) <= 78 AND length(coalesce(extra_receiver_value, '')) <= 78 "
            "AND length(coalesce(gas_limit, '')) <= 78 AND length(coalesce(refund_per_gas_unused, '')) <= 78",
            "Values are 256-bit integers.",
        ),
    ),
    suite("application_transfer_details", PRICE_IS_WHOLE, NOTIONAL_NEEDS_PRICE, REASON_WITHOUT_VALUE),
    suite(
        "applications_daily",
        rule("transfers_within_messages", "transfers <= messages", "A message holds one transfer at most."),
        rule(
            "notional_needs_transfers",
            "notional_usd IS NULL OR transfers > 0",
            "A notional value needs a transfer.",
        ),
    ),
)
