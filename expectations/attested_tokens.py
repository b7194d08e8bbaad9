"""Expectations of ``attested_tokens`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "attested_tokens",
    rule("attested_by_then", "attested_on <= date", "A day knows no later attestation."),
    rule(
        "attested_at_home",
        "CAST(substring_index(row_key, ':', 1) AS INT) = origin_chain",
        "Only the bridge of a token's own chain speaks for it.",
    ),
)
