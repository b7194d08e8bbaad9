"""Expectations of ``token_distribution`` beyond its contract."""

from permalake.audit.suite import rule, suite


def power(exponent: str) -> str:
    """SQL for an exact power of ten."""
    return f"cast(concat('1', repeat('0', {exponent})) AS decimal(20,0))"


SUITE = suite(
    "token_distribution",
    rule(
        "amount_within_bucket",
        "CASE WHEN bucket < 0 THEN amount < 0 ELSE amount >= addresses * "
        f"{power('bucket')} AND amount < addresses * {power('bucket + 1')} END",
        "The sum of balances fits the bucket and the number of addresses.",
    ),
    rule(
        "nobody_below_zero",
        "bucket >= 0 OR since_milestone IS NOT NULL",
        "Nobody is below zero where the whole ledger is known.",
    ),
)
