"""Why a transfer has no value in dollars: ``reason`` of ``token_transfer_details`` and its like."""

from __future__ import annotations

from permalake.contracts.schema import Column

DENIED, NOT_ASKED, NOT_ANSWERED = "denied", "not_asked", "not_answered"
NO_QUOTE, NOT_LISTED, LOW_CONFIDENCE, OUTLIER = "no_quote", "not_listed", "low_confidence", "outlier"
NO_DECIMALS, TOO_LARGE = "no_decimals", "too_large"
NO_TOKEN, NO_AMOUNT = "no_token", "no_amount"

PRICE_LIMIT = 10**12
"""From this price on (USD) a quote is taken for an error."""
BY_PROVIDER = (NOT_ANSWERED, NO_QUOTE, NOT_LISTED, NOT_ASKED)
"""Why a provider has no quote; of several providers' reasons the first in this order counts."""
MEANING = {
    NO_QUOTE: "no provider has a quote near enough in time",
    NOT_LISTED: "no provider knows the token",
    NOT_ANSWERED: "a provider failed to answer, or its plan does not reach that far back",
    NOT_ASKED: "no provider could be asked",
    LOW_CONFIDENCE: "the provider itself has less than prices.min_confidence in its quote",
    OUTLIER: "the quote is an outlier, and prices.exclude_outliers is set",
    DENIED: "the token is on the deny list",
    NO_DECIMALS: "the decimals of the token are not known",
    TOO_LARGE: "the value is beyond the type",
    NO_TOKEN: "the message does not name the token",
    NO_AMOUNT: "the message does not tell the amount",
}
_MESSAGES = (NO_TOKEN, NO_AMOUNT)


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
