"""Lists of messages on pages."""

from __future__ import annotations

from typing import Any

from permalake.web.state import RequestLake
from permalake.web.synthetic import is_synthetic
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest import identifiers
from permalake.wormhole.rest.event_filter import TARGET_TABLES
from permalake.wormhole.rest.events import EventFilter, list_events, load
from permalake.wormhole.rest.flows import chain_name
from permalake.wormhole.rest.message_page import time_of
from permalake.wormhole.rest.vaa_documents import first_row

LISTED = 25
"""Rows of a list on a page."""


def newest_messages(
    lake: RequestLake, reference: Reference, event_filter: EventFilter
) -> list[dict[str, Any]]:
    """Return the newest messages that a filter lets through, at most :data:`LISTED`."""
    keys = list_events(lake, event_filter, LISTED)
    tables = ("message_publication", "token_transfer_details", *TARGET_TABLES)
    messages = []
    for key, message_tables in zip(keys, load(lake, keys, tables, prices=False), strict=True):
        message = identifiers.of_row_key(key.row_key)
        details = first_row(message_tables, "token_transfer_details")
        targets = (row["target_chain"] for name in TARGET_TABLES for row in message_tables.get(name, ()))
        target, notional = next(targets, None), details.get("notional_usd")
        messages.append(
            {
                "id": message.text,
                "time": time_of(message_tables["message_publication"][0]["timestamp"]),
                "is_synthetic": is_synthetic(message_tables["message_publication"][0]["date"]),
                "chain": chain_name(reference, message.chain),
                "target": None if target is None else chain_name(reference, target),
                "amount": details.get("amount"),
                "symbol": details.get("origin_symbol"),
                "usd": None if notional is None else str(notional),
            }
        )
    return messages
