"""Laws of ledger updates: they are the outputs created and consumed, and add up to the sums by address."""

from __future__ import annotations

from permalake.audit.laws import balance, side
from permalake.iota.laws.tangle_sides import AT_MILESTONE

_BY_ADDRESS = f"address || ' ' || {AT_MILESTONE}"
_OF_ADDRESS = "output_id || ' ' || address"

LAWS = (
    *(
        balance(
            f"updates_{what}_add_up",
            "ledger_updates",
            f"What transactions {did} adds up to {column} of every address and milestone.",
            expected=side("address_analytics", _BY_ADDRESS, column),
            actual=side(
                "ledger_updates",
                _BY_ADDRESS,
                "amount",
                where=f"is_spent = {is_spent} AND transaction_id IS NOT NULL",
            ),
        )
        for what, did, column, is_spent in (
            ("received", "created", "recv_tokens", 0),
            ("sent", "consumed", "sent_tokens", 1),
        )
    ),
    balance(
        "updates_of_receipts",
        "ledger_updates",
        "Updates without a transaction are the funds of receipts.",
        expected=side("receipts", _OF_ADDRESS, "amount"),
        actual=side("ledger_updates", _OF_ADDRESS, "amount", where="transaction_id IS NULL"),
    ),
)
