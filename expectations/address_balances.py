"""Expectations of ``address_balances`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "address_balances",
    rule(
        "known_balance_is_not_negative",
        "since_milestone IS NOT NULL OR balance >= 0",
        "No balance is below zero where the whole ledger is known.",
    ),
    rule(
        "active_before_end",
        "active_on <= date",
        "Nobody was active later.",
    ),
)
