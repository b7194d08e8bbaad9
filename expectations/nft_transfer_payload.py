"""Expectations of ``nft_transfer_payload`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "nft_transfer_payload",
    rule(
        "symbol_fits",
        "octet_length(symbol) <= 96 AND octet_length(name) <= 96",
        "Symbol and name come from 32 bytes each.",
    ),
    rule("token_id_is_u256", "length(token_id) <= 78", "The token id is a 256-bit integer."),
)
