"""Outputs, created and consumed. Serialized outputs: TIP-7 (Chrysalis), TIP-18 (Stardust)."""

from expectations.common import amount_in_data, kind_in_data, little_endian, unsigned
from permalake.audit.suite import Rule, rule, suite


def _padded(amount: str) -> str:
    """Return SQL for a decimal text of up to 78 digits (u256), such that texts compare as numbers."""
    return f"lpad({amount}, 78, '0')"


_STARDUST = {"basic": "03", "alias": "04", "foundry": "05", "nft": "06"}
_NATIVE_TOKENS = rule(
    "native_tokens_in_data",
    f"native_token_count IS NOT DISTINCT FROM {little_endian('data', 10, 1)}",
    "native_token_count is the number at byte 10 of data.",
)


def _conditions(return_address: str) -> tuple[Rule, ...]:
    """Return the rules of unlock conditions; ``return_address`` is the column of the deposit's."""
    return (
        rule(
            "expiration_is_whole",
            "(expiration_time IS NULL) = (expiration_return_address IS NULL)",
            "An expiration has a time and a return address.",
        ),
        rule(
            "storage_return_is_whole",
            f"(storage_return_amount IS NULL) = ({return_address} IS NULL)",
            "A storage deposit return has an amount and an address.",
        ),
        rule(
            "storage_return_within_amount",
            "storage_return_amount <= amount",
            "No more of a deposit is returned than the output holds.",
        ),
    )


_METADATA = rule(
    "metadata_in_data",
    "(metadata IS NULL OR bytes_contain(data, metadata)) "
    "AND (immutable_metadata IS NULL OR bytes_contain(data, immutable_metadata))",
    "Metadata are bytes of data.",
)
_STATE = rule(
    "state_metadata_in_data",
    "bytes_contain(data, state_metadata)",
    "State metadata are bytes of data.",
)
_SCHEME = rule(
    "scheme_adds_up",
    f"{_padded('melted_tokens')} <= {_padded('minted_tokens')} "
    f"AND {_padded('newly_minted')} <= {_padded('minted_tokens')} "
    f"AND {_padded('newly_melted')} <= {_padded('melted_tokens')}",
    "No more is melted than minted, and the transaction's own part is within.",
)
_OWN = {
    "basic": _conditions("storage_return_address"),
    "alias": (_METADATA, _STATE),
    "foundry": (_METADATA, _SCHEME),
    "nft": (*_conditions("dust_return_address"), _METADATA),
}

SUITES = (
    *(
        suite(
            f"{kind}_outputs",
            kind_in_data(f"{kind} outputs", f"'{byte}'"),
            amount_in_data(2),
            _NATIVE_TOKENS,
            *_OWN[kind],
        )
        for kind, byte in _STARDUST.items()
    ),
    suite(
        "legacy_outputs",
        kind_in_data("output_type", "lpad(hex(output_type), 2, '0')"),
        amount_in_data(35),
    ),
    suite("treasury_outputs", amount_in_data(2)),
    suite(
        "receipts",
        rule(
            "output_of_position",
            f"idx = {unsigned('substring(output_id, 67, 2) || substring(output_id, 65, 2)')}",
            "output_id ends with the position among the funds.",
        ),
    ),
    suite(
        "protocol_parameters",
        rule(
            "announced_before",
            "target_milestone_index > milestone_index",
            "Parameters are announced before they are in force.",
        ),
    ),
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
    suite(
        "native_tokens",
        rule("amount_not_zero", "amount <> '0'", "No output holds none of a token."),
        rule("token_amount_is_u256", "length(amount) <= 78", "The amount is a 256-bit integer."),
    ),
    suite(
        "ledger_updates",
        rule(
            "consumed_by_transaction",
            "is_spent = 0 OR transaction_id IS NOT NULL",
            "Only a transaction consumes an output with an owner.",
        ),
    ),
    suite(
        "conflicting_transactions",
        rule("signer_or_owner", "is_signer = 1 OR amount > 0", "An address signed, or owns an output."),
    ),
)
