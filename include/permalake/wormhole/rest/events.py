"""Messages: one by its id, and the rows of several in every table, from the store as far as it holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake, copied_rows
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import ATTESTED_TOKENS
from permalake.wormhole.rest.event_filter import EventFilter, EventKey
from permalake.wormhole.rest.event_lists import list_events
from permalake.wormhole.rest.identifiers import MessageId
from permalake.wormhole.rest.rows import Parameters
from permalake.wormhole.rest.stored_events import stored_events

__all__ = ["EventFilter", "EventKey", "find", "list_events", "load"]

EVENT_TABLES = tuple(
    name
    for name, table in WORMHOLE_TABLES.items()
    if "row_key" in table.names and name != ATTESTED_TOKENS.name
)
"""Tables with rows of a message."""
_LAKE_PUBLICATION = "message_publication"
_SIGNED = "quorum_state"


def find(lake: RequestLake, message: MessageId) -> EventKey | None:
    """Return the key of one message; None where it is not published."""
    stored = stored_events(lake)
    if stored is not None and (key := stored.key(message.row_key)):
        return key
    scan = lake.find(_LAKE_PUBLICATION, "row_key", message.row_key)
    if scan.is_empty:
        return None
    copies = copied_rows(lake, _LAKE_PUBLICATION, scan, "row_key", message.row_key)
    return EventKey(**copies[0]) if copies else None


def signed_vaa(lake: RequestLake, message: MessageId) -> bytes | None:
    """Return the bytes of one message's VAA; None where it is not published."""
    stored = stored_events(lake)
    if stored is not None and (key := stored.key(message.row_key)):
        row = stored.rows([key], _SIGNED, prices=False)[key.row_key]
        if row is not None:
            return bytes(row["signed_vaa"])
    scan = lake.find(_LAKE_PUBLICATION, "row_key", message.row_key)
    copies = [] if scan.is_empty else copied_rows(lake, _SIGNED, scan, "row_key", message.row_key)
    return copies[0]["signed_vaa"] if copies else None


def load(
    lake: RequestLake, keys: Sequence[EventKey], tables: Iterable[str] = EVENT_TABLES, *, prices: bool = True
) -> list[dict[str, list[Row]]]:
    """Return the rows of each message by table, in the order of the keys; a table without one is left out.

    Args:
        lake: The published state.
        keys: The messages.
        tables: The tables.
        prices: Whether token_transfer_details has its columns of the quote, which only the lake holds.
    """
    by_key: dict[str, dict[str, list[Row]]] = {key.row_key: {} for key in keys}
    stored = stored_events(lake)
    for table in tables:
        stored_rows = stored.rows(keys, table, prices=prices) if stored is not None else {}
        rest = [key for key in keys if key.row_key not in stored_rows]
        for row in (*stored_rows.values(), *_of_lake(lake, rest, table)):
            if row is not None:
                by_key[row["row_key"]].setdefault(table, []).append(row)
    return [by_key[key.row_key] for key in keys]


def _of_lake(lake: RequestLake, keys: Sequence[EventKey], table: str) -> list[Row]:
    scan = Scan(days=sorted({key.date for key in keys}))
    if not lake.snapshot.locations(lake.network, table, scan):
        return []
    bound = Parameters()
    # To sort costs as much as to read, and a message has one row in most tables.
    order = "" if WORMHOLE_TABLES[table].key == ("row_key",) else "ORDER BY ALL"
    return lake.rows(
        f"SELECT * FROM {table} WHERE date IN ({bound.add_all(scan.days or ())}) "  # noqa: S608
        f"AND row_key IN ({bound.add_all(key.row_key for key in keys)}) {order}",
        bound,
        **{table: scan},
    )
