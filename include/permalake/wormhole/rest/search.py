"""What a text names: a message, a transaction of either chain, an account, a token."""

from __future__ import annotations

from permalake.lake.serving import EVERYTHING
from permalake.web.state import RequestLake
from permalake.wormhole.rest import identifiers
from permalake.wormhole.rest.account_page import is_account
from permalake.wormhole.rest.event_lists import list_events
from permalake.wormhole.rest.events import EventFilter, find


def finds(lake: RequestLake, text: str) -> bool:
    """Return whether the search finds something: a message, by itself or by what it names, or a token."""
    parts = text.replace(":", "/").split("/")
    try:
        if len(parts) == 3:
            return find(lake, identifiers.message_id(*parts)) is not None
        if len(parts) == 2:
            filters = [EventFilter(token=identifiers.token_id(":".join(parts)))]
        else:
            filters = named(lake, text)
            if is_account(lake, identifiers.address_spellings(text)):
                return True
    except ValueError:
        filters = []
    if text.upper() in symbols(lake):
        return True
    return any(list_events(lake, event_filter, 1) for event_filter in filters)


def named(lake: RequestLake, text: str) -> list[EventFilter]:
    """Return the filters of what a text may name, best first: transaction, payout, recipient.

    Raises:
        ValueError: if it is no id of any chain.
    """
    transactions = identifiers.transaction_spellings(text)
    filters = [EventFilter(transactions=transactions)]
    if lake.snapshot.table(lake.network, "redemptions"):
        filters.append(EventFilter(paid_by=transactions))
    if lake.snapshot.table(lake.network, "application_transfer_details"):
        filters.append(EventFilter(recipients=transactions))
    return filters


def symbols(lake: RequestLake) -> dict[str, list[tuple[int, str]]]:
    """Return the tokens that moved, each a chain and an address, by their symbols in upper case."""

    def derive() -> dict[str, list[tuple[int, str]]]:
        if not lake.snapshot.table(lake.network, "notional_transferred_daily"):
            return {}
        rows = lake.rows(
            "SELECT DISTINCT upper(symbol) AS symbol, origin_chain, origin_address "
            "FROM notional_transferred_daily WHERE symbol IS NOT NULL ORDER BY ALL",
            notional_transferred_daily=EVERYTHING,
        )
        by_symbol: dict[str, list[tuple[int, str]]] = {}
        for row in rows:
            by_symbol.setdefault(row["symbol"], []).append((row["origin_chain"], row["origin_address"]))
        return by_symbol

    return lake.once("symbols of tokens", derive)
