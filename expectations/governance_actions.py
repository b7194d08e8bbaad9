"""Expectations of ``governance_actions`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "governance_actions",
    rule("module_fits", "length(module) BETWEEN 1 AND 32", "A module's name comes from 32 bytes."),
    rule(
        "fields_of_known_actions",
        "(fields IS NULL) = (action_name IS NULL)",
        "Fields are told where the action is known.",
    ),
)
