"""Expectations of ``quorum_state`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "quorum_state",
    rule("version_1", "hex(substring(signed_vaa, 1, 1)) = '01'", "The VAA is of version 1."),
    rule(
        "holds_signatures",
        "length(signed_vaa) >= 6 + 66 + 51",
        "The VAA holds a header, a signature and a body.",
    ),
)
