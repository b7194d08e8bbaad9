"""Expectations of ``transactions`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "transactions",
    rule(
        "has_a_transaction",
        "inclusion_state <> 2",
        "The message of a transaction's part is included or conflicting.",
    ),
    rule(
        "input_length",
        "variant <> 'input' OR length(data) = 35",
        "An input has 35 bytes: kind, transaction id, index.",
    ),
    rule("data_not_empty", "length(data) > 0", "data holds bytes."),
)
