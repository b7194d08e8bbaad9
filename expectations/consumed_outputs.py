"""Expectations of ``consumed_outputs`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "consumed_outputs",
    rule("date_of_milestone", "date = to_date(ms_timestamp)", "date is the UTC date of ms_timestamp."),
    rule(
        "spender_but_of_treasury",
        "(kind = 'treasury') = (transaction_id IS NULL) AND (kind = 'treasury') = (message_id IS NULL)",
        "All but the treasury is consumed by a transaction.",
    ),
    rule(
        "owner_but_of_treasury",
        "(kind = 'treasury') = (address IS NULL)",
        "All but the treasury has an owner.",
    ),
)
