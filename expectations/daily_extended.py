"""Expectations of ``daily_extended`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "daily_extended",
    rule("average_within_most", "avg_outputs <= max_outputs", "The average is at most the maximum."),
    rule(
        "average_of_transactions",
        "(avg_outputs IS NULL) = (included_transaction_count = 0)",
        "There is an average where there are transactions.",
    ),
)
