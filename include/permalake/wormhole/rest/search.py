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
            wanted = [EventFilter(token=identifiers.token_id(":".join(parts)))]
        else:
            wanted = named(lake, text)
            if text.upper() in symbols(lake) or is_account(lake, identifiers.address_spellings(text)):
                return True
    except ValueError:
        return False
    return any(list_events(lake, one, 1) for one in wanted)


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


def symbols(lake: RequestLake) -> set[str]:
    """Return the symbols of every token that moved, in upper case."""

    def derive() -> set[str]:
        if not lake.snapshot.table(lake.network, "token_transfer_details"):
            return set()
        rows = lake.rows(
            "SELECT DISTINCT upper(origin_symbol) AS symbol FROM token_transfer_details "
            "WHERE origin_symbol IS NOT NULL",
            token_transfer_details=EVERYTHING,
        )
        return {row["symbol"] for row in rows}

    return lake.once("symbols of tokens", derive)
