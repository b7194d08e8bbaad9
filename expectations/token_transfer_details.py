"""Expectations of ``token_transfer_details`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "token_transfer_details",
    rule(
        "price_is_whole",
        "(token_price_usd IS NULL) = (price_timestamp IS NULL) "
        "AND (token_price_usd IS NULL) = (price_source IS NULL)",
        "A price comes with its time and source.",
    ),
    rule(
        "notional_needs_price",
        "notional_usd IS NULL OR (amount IS NOT NULL AND token_price_usd IS NOT NULL)",
        "A notional value needs an amount and a price.",
    ),
    rule("notional_not_negative", "notional_usd >= 0", "No notional value is negative."),
    rule("price_not_negative", "token_price_usd >= 0", "No price is negative."),
)
