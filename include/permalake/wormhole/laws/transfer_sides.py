"""Rows that several laws read: token transfers with their route, amount and value."""

from __future__ import annotations

from permalake.audit.laws import shared

ROUTE = ("date", "emitter_chain", "target_chain", "origin_chain", "origin_address")
AT_ROUTE = (
    "'chain ' || emitter_chain || ' to ' || target_chain "
    "|| ', token ' || origin_chain || ':' || origin_address"
)
ROUTED = shared(
    "routed",
    """
    SELECT transfers.date AS date, transfers.row_key AS row_key, emitter_chain, target_chain, origin_chain,
        origin_address, events.timestamp AS timestamp, details.amount AS amount, token_price_usd,
        notional_usd, price_timestamp, price_source, price_distance_seconds, check_price_usd,
        check_price_timestamp, check_price_source, stand_in, stand_in_price_usd, stand_in_timestamp
    FROM token_transfer_payload AS transfers
    JOIN message_publication AS events
        ON transfers.date = events.date AND transfers.row_key = events.row_key
    LEFT JOIN token_transfer_details AS details
        ON transfers.date = details.date AND transfers.row_key = details.row_key
    """,
)
"""Token transfers with their route, amount and value."""
