"""Laws of the daily tables: counts and sums of the day's messages and transfers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Context, Decimal

from permalake.audit.laws import balance, by, each_row, entries, side, violations
from permalake.contracts.rows import Row
from permalake.wormhole.laws.transfer_sides import AT_ROUTE, ROUTE, ROUTED

_EMITTER_CHAIN = "'chain ' || emitter_chain"
_EXACT = Context(prec=200)
LIMIT = Decimal(10) ** 30
"""The bound of a decimal(38,8)."""
_BY_ROUTE = " AND ".join(f"daily.{name} = sums.{name}" for name in ROUTE)
_ROUTES = f"""
SELECT daily.date AS date, daily.place AS place, daily.amount AS amount, daily.notional_usd AS notional_usd,
    sums.amounts AS amounts, sums.notionals AS notionals
FROM (SELECT {", ".join(ROUTE)}, {AT_ROUTE} AS place, amount, notional_usd
      FROM notional_transferred_daily) AS daily
JOIN (SELECT {", ".join(ROUTE)}, array_agg(amount) AS amounts, array_agg(notional_usd) AS notionals
      FROM {ROUTED} GROUP BY {", ".join(ROUTE)}) AS sums ON {_BY_ROUTE}
"""
"""Routes with the amounts and values of their transfers."""
# Distinct receivers per target chain.
_RECEIVERS = """
SELECT date, target_chain, count(DISTINCT receiver) AS n
FROM (
    SELECT transfers.date AS date, target_chain,
        coalesce(details.receiver_address, transfers.target_address) AS receiver
    FROM token_transfer_payload AS transfers LEFT JOIN chain_details AS details
        ON transfers.date = details.date AND transfers.row_key = details.row_key
) GROUP BY date, target_chain
"""
# Days that count more quarantined VAAs than the quarantine holds. It may hold more: also input that names no
# chain. Of a day that is copied the publisher's quarantine holds them.
_UNEXPLAINED = """
SELECT counted.date AS date, 'quarantined' AS place, 'at most ' || coalesce(held.n, 0) AS expected,
    counted.n AS found
FROM (SELECT date, sum(quarantined) AS n FROM messages_daily GROUP BY date) AS counted
LEFT JOIN (SELECT date, count(*) AS n FROM quarantine GROUP BY date) AS held ON counted.date = held.date
CROSS JOIN configuration
WHERE counted.n > coalesce(held.n, 0) AND NOT is_copy
"""


def _wrong_sums(row: Row) -> Iterator[tuple[object, ...]]:
    """Find the amount or value of a route that is not the sum over its transfers."""
    amount = total(Decimal(amount) for amount in row["amounts"] or () if amount is not None)
    value = total(notional for notional in row["notionals"] or () if notional is not None)
    if value is not None and abs(value) >= LIMIT:
        value = None
    stated = row["amount"]
    if amount != (None if stated is None else Decimal(stated)):
        yield row["date"], f"{row['place']} amount", value_text(amount), stated or "null"
    if value != row["notional_usd"]:
        yield row["date"], f"{row['place']} notional_usd", value_text(value), value_text(row["notional_usd"])


def total(values: Iterable[Decimal]) -> Decimal | None:
    """Return the exact sum; None without values."""
    sum_so_far = None
    for value in values:
        sum_so_far = value if sum_so_far is None else _EXACT.add(sum_so_far, value)
    return sum_so_far


def value_text(value: Decimal | None) -> str:
    """Return a value as violations show it."""
    return "null" if value is None else f"{value:f}"


LAWS = (
    balance(
        "verified_adds_up",
        "messages_daily",
        "verified is the number of messages of the chain.",
        expected=side("message_publication", _EMITTER_CHAIN),
        actual=side("messages_daily", _EMITTER_CHAIN, "verified"),
    ),
    violations(
        "quarantined_is_in_quarantine",
        "messages_daily",
        "No more VAAs are counted as quarantined than quarantine holds.",
        _UNEXPLAINED,
    ),
    balance(
        "transfers_add_up",
        "notional_transferred_daily",
        "transfers is the number of transfers of the route and token.",
        expected=by(ROUTED, AT_ROUTE),
        actual=side("notional_transferred_daily", AT_ROUTE, "transfers"),
    ),
    violations(
        "sums_add_up",
        "notional_transferred_daily",
        "amount and notional_usd are the sums of the transfers of the route and token.",
        _ROUTES,
        check=each_row(_wrong_sums),
    ),
    balance(
        "receivers_add_up",
        "addresses_daily",
        "addresses is the number of distinct receivers on the chain.",
        expected=entries(_RECEIVERS, "'chain ' || target_chain", "n"),
        actual=side("addresses_daily", "'chain ' || target_chain", "addresses"),
    ),
)
