"""Expectations of ``chain_details`` beyond its contract."""

from permalake.audit.suite import WARNING, rule, suite

SUITE = suite(
    "chain_details",
    rule(
        "token_name_needs_token",
        "resulting_token_address IS NOT NULL "
        "OR coalesce(resulting_token_symbol, resulting_token_name) IS NULL",
        "A resulting token that has a name has an address.",
        WARNING,
    ),
)
