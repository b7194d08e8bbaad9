"""Expectations of ``asset_meta_payload`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "asset_meta_payload",
    rule(
        "symbol_fits",
        "octet_length(symbol) <= 96 AND octet_length(name) <= 96",
        "Symbol and name come from 32 bytes each.",
    ),
)
