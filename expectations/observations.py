"""Expectations of ``observations`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "observations",
    rule("signature_fits", "length(signature) = 130", "A signature is 65 bytes."),
)
