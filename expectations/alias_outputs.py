"""Expectations of ``alias_outputs`` beyond its contract."""

from permalake.audit.suite import little_endian, rule, suite

SUITE = suite(
    "alias_outputs",
    rule("date_of_milestone", "date = to_date(ms_timestamp)", "date is the UTC date of ms_timestamp."),
    rule(
        "created_by_included",
        "inclusion_state = 1",
        "Only included transactions and receipts create outputs.",
    ),
    rule("kind_in_data", "hex(substring(data, 1, 1)) = '04'", "data is that of an alias output."),
    rule(
        "amount_in_data", f"amount = {little_endian('data', 2, 8)}", "amount stands in data, behind the kind."
    ),
)
