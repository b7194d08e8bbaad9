"""Carried tables: attestations and locked value at the end of a day."""

from expectations.common import VALUE_NEEDS_AMOUNT
from permalake.audit.suite import WARNING, rule, suite

SUITES = (
    suite(
        "attested_tokens",
        rule("attested_by_then", "attested_on <= date", "The attestation is not after date."),
        rule(
            "attested_at_home",
            "try_cast(split_part(row_key, ':', 1) AS INT) = origin_chain",
            "The attestation is from the token's own chain.",
        ),
    ),
    suite(
        "tvl_daily",
        rule(
            "amount_not_negative",
            "NOT starts_with(amount, '-')",
            "No more of a token came back than went out (history may begin in between).",
            WARNING,
        ),
        VALUE_NEEDS_AMOUNT,
    ),
)
