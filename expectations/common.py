"""Rules that several tables share."""

from __future__ import annotations

from permalake.audit.suite import Rule, rule

TEXT_OF_32_BYTES = rule(
    "symbol_fits",
    "strlen(symbol) <= 96 AND strlen(name) <= 96",
    "Symbol and name come from 32 bytes each.",
)
VALUE_NEEDS_AMOUNT = rule(
    "notional_needs_amount", "notional_usd IS NULL OR amount IS NOT NULL", "A notional value needs an amount."
)
PRICE_IS_WHOLE = rule(
    "price_is_whole",
    "(token_price_usd IS NULL) = (price_timestamp IS NULL) "
    "AND (token_price_usd IS NULL) = (price_source IS NULL)",
    "A price comes with its time and source.",
)
NOTIONAL_NEEDS_PRICE = rule(
    "notional_needs_price",
    "notional_usd IS NULL OR (amount IS NOT NULL AND token_price_usd IS NOT NULL)",
    "A notional value needs an amount and a price.",
)
REASON_WITHOUT_VALUE = rule(
    "reason_without_value",
    "(notional_usd IS NULL) = (reason IS NOT NULL)",
    "A missing value has a reason.",
)
PAYLOADS_ARE_STATES = rule(
    "payloads_are_states",
    "no_payload_count + tagged_data_count + transaction_payload_count + milestone_payload_count "
    "+ treasury_transaction_count = confirmed_count + conflicting_count + no_transaction_count",
    "Messages by payload are as many as messages by state.",
)


_BUCKETS = 11


def buckets_add_up(side: str) -> Rule:
    """Return the rule of ``input_buckets`` or ``output_buckets``: they count included transactions."""
    total = " + ".join(f"coalesce({side}_buckets[{at}], 0)" for at in range(1, _BUCKETS + 1))
    return rule(
        f"{side}_buckets_add_up",
        f"len({side}_buckets) = {_BUCKETS} AND {total} = confirmed_count",
        f"Every included transaction is in one bucket of {side}s.",
    )


def kind_in_data(kind: str, byte: str) -> Rule:
    """Return the rule that ``data`` starts with the type of its output, an SQL string of two hex digits."""
    return rule(
        "kind_in_data", f"substring(hex(data), 1, 2) = {byte}", f"data starts with the type of {kind}."
    )


def amount_in_data(start: int) -> Rule:
    """Return the rule that ``amount`` is the u64 at byte ``start`` (from 1) of ``data``."""
    return rule(
        "amount_in_data",
        f"amount IS NOT DISTINCT FROM {little_endian('data', start, 8)}",
        f"amount is the integer at byte {start} of data.",
    )


def not_negative_when_whole(*columns: str) -> Rule:
    """Return the rule that figures of a ledger known from its beginning are not negative."""
    figures = " AND ".join(f"{column} >= 0" for column in columns)
    return rule(
        "known_ledger_is_not_negative",
        f"since_milestone IS NOT NULL OR ({figures})",
        "Nothing is below zero where the whole ledger is known.",
    )


def little_endian(column: str, start: int, size: int) -> str:
    """Return SQL for the unsigned integer of ``size`` bytes at ``start`` (from 1) of a binary column."""
    places = range(start + size - 1, start - 1, -1)
    return unsigned(" || ".join(f"substring(hex({column}), {2 * at - 1}, 2)" for at in places))


def unsigned(digits: str) -> str:
    """Return SQL for the integer that hex digits write."""
    return f"CAST(try_cast('0x' || {digits} AS UBIGINT) AS decimal(20,0))"
