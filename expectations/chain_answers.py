"""Expectations of ``chain_answers`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "chain_answers",
    rule("answer_has_address", "told = 0 OR address IS NOT NULL", "An answer holds an address."),
    rule("reason_where_none", "(told = 0) = (reason IS NOT NULL)", "What has no answer has a reason."),
)
