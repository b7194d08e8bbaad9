"""Why a transfer has no value in dollars: ``reason`` of ``token_transfer_details`` and its like."""

from __future__ import annotations

from typing import get_args

from permalake.contracts.reason_codes import ValueReason
from permalake.contracts.reasons import REASONS
from permalake.contracts.schema import Column
from permalake.contracts.sql_text import literal

DENIED: ValueReason = "denied"
NOT_ASKED: ValueReason = "not_asked"
NOT_ANSWERED: ValueReason = "not_answered"
NO_QUOTE: ValueReason = "no_quote"
NOT_LISTED: ValueReason = "not_listed"
LOW_CONFIDENCE: ValueReason = "low_confidence"
OUTLIER: ValueReason = "outlier"
NO_DECIMALS: ValueReason = "no_decimals"
TOO_LARGE: ValueReason = "too_large"
NO_TOKEN: ValueReason = "no_token"  # noqa: S105
NO_AMOUNT: ValueReason = "no_amount"

PRICE_LIMIT = 10**12
"""From this price on (USD) a quote is taken for an error."""
BY_PROVIDER = (NOT_ANSWERED, NO_QUOTE, NOT_LISTED, NOT_ASKED)
"""Why a provider has no quote; of several providers' reasons the first in this order counts."""
MEANING = {code: REASONS[code].meaning for code in get_args(ValueReason)}
_MESSAGES = (NO_TOKEN, NO_AMOUNT)


def meaning_sql(reason: str) -> str:
    """Return SQL for what a reason means, in words; null without one. ``reason``: SQL for the code."""
    codes = ", ".join(map(literal, MEANING))
    words = ", ".join(map(literal, MEANING.values()))
    return f"map([{codes}], [{words}])[{reason}]"


def reason_column(*others: str) -> Column:
    """Return the column ``reason``; ``others``: further reasons that the table knows."""
    names = tuple(name for name in MEANING if name not in _MESSAGES or name in others)
    listed = "; ".join(f"{name}: {MEANING[name]}" for name in names)
    return Column(
        "reason",
        "string",
        f"Why there is no notional_usd, null where there is one. {listed}.",
        required=False,
        values=names,
    )
