"""Expectations of ``ledger_outputs`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "ledger_outputs",
    rule(
        "known_ledger_is_not_negative",
        "since_milestone IS NOT NULL OR (unspent_count >= 0 AND unspent_amount >= 0 AND unspent_bytes >= 0)",
        "Nothing is below zero where the whole ledger is known.",
    ),
)
