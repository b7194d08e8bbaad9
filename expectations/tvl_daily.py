"""Expectations of ``tvl_daily`` beyond its contract."""

from permalake.audit.suite import WARNING, rule, suite

SUITE = suite(
    "tvl_daily",
    rule(
        "amount_not_negative",
        "NOT startswith(amount, '-')",
        "No more of a token came back than went out (history may begin in between).",
        WARNING,
    ),
    rule(
        "notional_needs_amount",
        "notional_usd IS NULL OR amount IS NOT NULL",
        "A notional value needs an amount.",
    ),
)
