"""Laws of applications: every message has one, and what they move is counted once."""

from __future__ import annotations

from collections.abc import Iterator

from permalake.audit.laws import balance, covered, each_row, entries, side, violations
from permalake.contracts.rows import Row
from permalake.wormhole.codec.applications.transfers import PASSING_LAYOUTS
from permalake.wormhole.laws.sum_laws import LIMIT, total, value_text
from permalake.wormhole.laws.value_laws import far_quotes, wrong_distances, wrong_values

_MESSAGES, _TRANSFERS, _DETAILS = (
    "application_messages",
    "application_transfers",
    "application_transfer_details",
)
_DAILY = "applications_daily"
_PASSING = f"({', '.join(repr(layout) for layout in PASSING_LAYOUTS)})"
_EMITTER_CHAIN = "CAST(split_part(row_key, ':', 1) AS INT)"
_AT = "app_id || ' of chain ' || emitter_chain"
_APPLICATIONS = f"SELECT date, row_key, app_id, {_EMITTER_CHAIN} AS emitter_chain, is_listed FROM {_MESSAGES}"
# What the token bridge moves, and what only messages of applications tell, each once.
_MOVED = f"""
SELECT date, row_key, notional_usd FROM token_transfer_details
UNION ALL
SELECT details.date AS date, details.row_key AS row_key, notional_usd
FROM {_DETAILS} AS details
SEMI JOIN (SELECT date, row_key FROM {_TRANSFERS} WHERE in_token_transfers = 0) AS own
    ON details.date = own.date AND details.row_key = own.row_key
"""
_VALUES = f"""
SELECT applications.date AS date, app_id, emitter_chain, is_listed, notional_usd
FROM ({_APPLICATIONS}) AS applications JOIN ({_MOVED}) AS moved
    ON applications.date = moved.date AND applications.row_key = moved.row_key
"""
_SUMS = f"""
SELECT daily.date AS date, daily.app_id || ' of chain ' || daily.emitter_chain AS place,
    daily.notional_usd AS notional_usd, sums.notionals AS notionals
FROM {_DAILY} AS daily LEFT JOIN (
    SELECT date, app_id, emitter_chain,
        array_agg(CASE WHEN is_listed = 1 THEN notional_usd END) AS notionals
    FROM ({_VALUES}) GROUP BY date, app_id, emitter_chain
) AS sums
    ON daily.date = sums.date AND daily.app_id = sums.app_id AND daily.emitter_chain = sums.emitter_chain
"""
_VALUED = f"""
SELECT date, row_key, amount, token_price_usd, notional_usd FROM {_DETAILS}
WHERE amount IS NOT NULL AND token_price_usd IS NOT NULL
"""
_TOKENS = f"""
SELECT details.date AS date, details.row_key AS row_key, token_chain, token_address, token_price_usd,
    notional_usd, price_timestamp, price_source, price_distance_seconds, timestamp
FROM {_DETAILS} AS details
JOIN {_TRANSFERS} AS moved ON details.date = moved.date AND details.row_key = moved.row_key
JOIN message_publication AS events ON details.date = events.date AND details.row_key = events.row_key
WHERE token_price_usd IS NOT NULL
"""
_PRICED_DENIED = f"""
SELECT moved.date AS date, row_key AS place, 'no price' AS expected, token_price_usd AS found
FROM ({_TOKENS}) AS moved SEMI JOIN denied_tokens AS tokens
    ON moved.token_chain = tokens.chain AND moved.token_address = tokens.token_address
"""
_LOST_QUOTES = f"""
SELECT moved.date AS date, row_key AS place, 'its quote in token_prices' AS expected, 'none' AS found
FROM ({_TOKENS}) AS moved ANTI JOIN token_prices AS quotes
    ON moved.token_chain = quotes.origin_chain AND moved.token_address = quotes.origin_address
    AND price_source = quotes.provider AND price_timestamp = quotes.quote_time
    AND token_price_usd = quotes.price_usd
"""
_BRIDGED = f"SELECT date, row_key FROM {_TRANSFERS} WHERE in_token_transfers = 1"
_STAYING = f"""
SELECT moved.date AS date, moved.row_key AS row_key FROM ({_BRIDGED}) AS moved
ANTI JOIN (SELECT date, row_key FROM {_MESSAGES} WHERE layout IN {_PASSING}) AS passed
    ON moved.date = passed.date AND moved.row_key = passed.row_key
"""
_ROUTE = "row_key || ' to ' || target_chain"
_REPEATED = (
    "row_key || ' ' || coalesce(amount, 'none') || ' ' || coalesce(CAST(notional_usd AS STRING), 'none')"
)


def _wrong_sums(row: Row) -> Iterator[tuple[object, ...]]:
    """Find a value of an application that is not the sum over its transfers."""
    value = total(notional for notional in row["notionals"] or () if notional is not None)
    if value is not None and abs(value) >= LIMIT:
        value = None
    if value != row["notional_usd"]:
        yield row["date"], row["place"], value_text(value), value_text(row["notional_usd"])


def _bridged(table: str, place: str, keys: str = _BRIDGED) -> str:
    """Return a side of what the token bridge moves for applications, as ``table`` tells it."""
    rows = (
        f"SELECT moved.* FROM {table} AS moved SEMI JOIN ({keys}) AS bridged "
        "ON moved.date = bridged.date AND moved.row_key = bridged.row_key"
    )
    return entries(rows, place)


LAWS = (
    balance(
        "application_of_every_message",
        _MESSAGES,
        "Every message has an application, or is said to have none.",
        expected=side("message_publication", "row_key"),
        actual=side(_MESSAGES, "row_key"),
    ),
    covered(
        "application_transfers_have_application",
        _TRANSFERS,
        "Every row's key and application is in application_messages.",
        things=side(_TRANSFERS, "row_key || ' ' || app_id"),
        allowed=side(_MESSAGES, "row_key || ' ' || app_id"),
    ),
    covered(
        "deliveries_have_application",
        "relayer_deliveries",
        "Every row's key is in application_messages.",
        things=side("relayer_deliveries", "row_key"),
        allowed=side(_MESSAGES, "row_key"),
    ),
    balance(
        "details_of_every_application_transfer",
        _DETAILS,
        "Every transfer of an application has its details.",
        expected=entries(_TRANSFERS, "row_key"),
        actual=entries(_DETAILS, "row_key"),
    ),
    balance(
        "bridged_transfers_agree",
        _TRANSFERS,
        "What the token bridge moves for an application has its amount and token.",
        expected=_bridged(
            "token_transfer_payload",
            "row_key || ' ' || amount || ' ' || origin_chain || ':' || origin_address",
        ),
        actual=_bridged(_TRANSFERS, "row_key || ' ' || amount || ' ' || token_chain || ':' || token_address"),
    ),
    balance(
        "bridged_targets_agree",
        _TRANSFERS,
        "What the token bridge moves for an application has its target chain, unless the application passes "
        "it on to a chain behind that one.",
        expected=_bridged("token_transfer_payload", _ROUTE, _STAYING),
        actual=_bridged(_TRANSFERS, _ROUTE, _STAYING),
    ),
    balance(
        "bridged_values_agree",
        _DETAILS,
        "What the token bridge moves for an application has one amount and one value.",
        expected=_bridged("token_transfer_details", _REPEATED),
        actual=_bridged(_DETAILS, _REPEATED),
    ),
    violations(
        "application_notional_is_amount_times_price",
        _DETAILS,
        "notional_usd is amount x token_price_usd, half-even to 8 places.",
        _VALUED,
        check=each_row(wrong_values),
    ),
    violations(
        "applications_denied_tokens_have_no_price", _DETAILS, "Denied tokens get no price.", _PRICED_DENIED
    ),
    violations("applications_quotes_are_kept", _DETAILS, "Every quote that served is kept.", _LOST_QUOTES),
    violations(
        "applications_quote_within_window",
        _DETAILS,
        "A quote is near the VAA in time.",
        far_quotes(f"({_TOKENS})"),
    ),
    violations(
        "applications_distance_to_quote",
        _DETAILS,
        "price_distance_seconds is the time between quote and VAA.",
        wrong_distances(f"({_TOKENS})"),
    ),
    balance(
        "application_messages_add_up",
        _DAILY,
        "messages is the number of messages of the application and chain.",
        expected=entries(_APPLICATIONS, _AT),
        actual=side(_DAILY, _AT, "messages"),
    ),
    balance(
        "application_transfers_add_up",
        _DAILY,
        "transfers is the number of token transfers of the application and chain.",
        expected=entries(_VALUES, _AT),
        actual=side(_DAILY, _AT, "transfers"),
    ),
    violations(
        "application_sums_add_up",
        _DAILY,
        "notional_usd is the sum of the transfers of the application and chain whose contract is listed.",
        _SUMS,
        check=each_row(_wrong_sums),
    ),
)
