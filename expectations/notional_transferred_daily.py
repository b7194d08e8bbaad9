"""Expectations of ``notional_transferred_daily`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "notional_transferred_daily",
    rule("notional_not_negative", "notional_usd >= 0", "No notional value is negative."),
    rule(
        "notional_needs_amount",
        "notional_usd IS NULL OR amount IS NOT NULL",
        "A notional value needs an amount.",
    ),
)
