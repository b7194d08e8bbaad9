"""What a day changed in the ledger."""

from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "ledger_changes",
        rule(
            "conditions_within_outputs",
            "timelock_count <= count AND expiration_count <= count AND storage_deposit_return_count <= count",
            "No more outputs have a condition than there are.",
        ),
        rule(
            "deposit_within_amount",
            "deposit <= amount",
            "A storage deposit is at most the amount.",
        ),
    ),
    suite(
        "balance_changes",
        rule("something_changed", "change <> 0 OR is_active = 1", "The day touched the address."),
    ),
)
