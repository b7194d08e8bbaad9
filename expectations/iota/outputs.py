"""Outputs, created and consumed. Serialized outputs: TIP-7 (Chrysalis), TIP-18 (Stardust)."""

from expectations.common import amount_in_data, kind_in_data
from permalake.audit.suite import rule, suite

_STARDUST = {"basic": "03", "alias": "04", "foundry": "05", "nft": "06"}

SUITES = (
    *(
        suite(f"{kind}_outputs", kind_in_data(f"{kind} outputs", f"'{byte}'"), amount_in_data(2))
        for kind, byte in _STARDUST.items()
    ),
    suite(
        "legacy_outputs",
        kind_in_data("output_type", "lpad(hex(output_type), 2, '0')"),
        amount_in_data(35),
    ),
    suite("treasury_outputs", amount_in_data(2)),
    suite(
        "consumed_outputs",
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
    ),
)
