"""Expectations of ``unlock_conditions`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "unlock_conditions",
    rule(
        "only_deposits_are_returned",
        "condition = 'storage_deposit_return' OR (created_return_amount = 0 AND consumed_return_amount = 0 "
        "AND unspent_return_amount = 0)",
        "Only storage deposit return conditions return something.",
    ),
    rule(
        "returns_within_amounts",
        "created_return_amount <= created_amount AND consumed_return_amount <= consumed_amount",
        "An output returns no more than it holds.",
    ),
    rule(
        "known_ledger_is_not_negative",
        "since_milestone IS NOT NULL OR (unspent_count >= 0 AND unspent_amount >= 0 "
        "AND unspent_return_amount >= 0)",
        "Nothing is below zero where the whole ledger is known.",
    ),
)
