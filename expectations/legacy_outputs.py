"""Expectations of ``legacy_outputs`` beyond its contract."""

from permalake.audit.suite import little_endian, rule, suite

SUITE = suite(
    "legacy_outputs",
    rule("date_of_milestone", "date = to_date(ms_timestamp)", "date is the UTC date of ms_timestamp."),
    rule(
        "created_by_included",
        "inclusion_state = 1",
        "Only included transactions and receipts create outputs.",
    ),
    rule(
        "kind_in_data",
        "hex(substring(data, 1, 1)) = lpad(hex(output_type), 2, '0')",
        "data is that of an output of this type.",
    ),
    rule(
        "amount_in_data",
        f"amount = {little_endian('data', 35, 8)}",
        "amount stands in data, behind kind and address.",
    ),
)
