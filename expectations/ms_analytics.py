"""Expectations of ``ms_analytics`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "ms_analytics",
    rule(
        "transactions_within_messages",
        "transaction_count <= message_count",
        "A milestone has no more transactions than messages.",
    ),
    rule(
        "tokens_need_transactions",
        "transaction_count > 0 OR transferred_tokens = 0",
        "Without transactions nothing is transferred.",
    ),
)
