"""Custody: balances of token bridges."""

from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "token_custody",
        rule(
            "known_has_balance",
            "(status = 'known') = (balance IS NOT NULL)",
            "A balance is told or it is not; what is not known is never 0.",
        ),
        rule(
            "reason_unless_known",
            "(status = 'known') = (reason IS NULL)",
            "What is not known has its reason.",
        ),
        rule("balance_has_block", "balance IS NULL OR block IS NOT NULL", "A balance is one of a block."),
        rule(
            "amount_has_decimals",
            "(amount IS NULL) = (balance IS NULL OR decimals IS NULL)",
            "Where the token tells its decimals, the balance is an amount.",
        ),
    ),
)
