"""``/api/wormhole/v1``: messages with all their rows, and the daily figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from permalake.contracts.rows import Row
from permalake.web.answers import answer
from permalake.web.head import HeadRoute
from permalake.web.paging import Microseconds, Nothing, PageQuery, Text
from permalake.web.parameter_types import IsoDate
from permalake.web.problems import documented, not_found
from permalake.web.row_types import members_type, page_of, row_type
from permalake.web.state import PublishedLake, RequestLake, lacks
from permalake.web.synthetic import is_synthetic
from permalake.web.table_pages import ListedTable, json_value, table_page
from permalake.wormhole.contracts import WORMHOLE_TABLES, tables
from permalake.wormhole.rest import identifiers
from permalake.wormhole.rest.dependencies import ChainNumber, NamedMessage, read
from permalake.wormhole.rest.events import EVENT_TABLES, EventFilter, EventKey, find, list_events, load
from permalake.wormhole.rest.wormholescan_answers import MessageName

router = APIRouter(tags=["wormhole"], route_class=HeadRoute)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MANY = frozenset({tables.OBSERVATIONS.name})
"""Tables that may hold several rows of a message."""


class _Dates(PageQuery):
    start: IsoDate | None = Field(None, description="First date, inclusive.")
    end: IsoDate | None = Field(None, description="Last date, inclusive.")


class _ByChain(_Dates):
    chain: ChainNumber | None = Field(
        None, ge=0, le=65535, description="Chain of the emitter: Wormhole chain id, or name."
    )


class _ByTarget(_Dates):
    target_chain: ChainNumber | None = Field(
        None, ge=0, le=65535, alias="targetChain", description="Wormhole chain id, or name."
    )


class _Transfers(_ByChain):
    target_chain: ChainNumber | None = Field(
        None, ge=0, le=65535, alias="targetChain", description="Wormhole chain id, or name."
    )
    token: str | None = Field(
        None, max_length=80, description="CHAIN:HEX64, the token's own chain and its address there."
    )

    def token_id(self) -> tuple[int, str] | None:
        """Return the token; raise a 400 where the parameter is none."""
        return read(identifiers.token_id, self.token) if self.token is not None else None


class _TokenDays(_ByChain):
    chain: ChainNumber | None = Field(
        None, ge=0, le=65535, description="The tokens' own chain: Wormhole chain id, or name."
    )
    token: str | None = Field(None, max_length=80, description="CHAIN:HEX64.")


class _OfTransaction(PageQuery):
    tx_id: str = Field(alias="txId", description="Transaction id: hex with or without 0x, or base58.")


_ROWS = {name: row_type(name, table.doc, table.columns) for name, table in WORMHOLE_TABLES.items()}
_EVENT = members_type(
    "WormholeEvent",
    "A message: its row in each table that has one; of observations all rows. `is_synthetic`: it is made up; "
    "`provisional`: it is of the live head, whose day is not published yet.",
    {"id": MessageName},
    {"is_synthetic": Literal[True], "provisional": Literal[True]}
    | {name: Sequence[_ROWS[name]] if name in _MANY else _ROWS[name] for name in EVENT_TABLES},  # type: ignore[valid-type]
)
_EVENTS = answer(page_of(_EVENT))


@router.get("/events/{chain}/{emitter}/{sequence}", responses={**documented(), **answer(_EVENT)})
def event(
    lake: PublishedLake,
    message: NamedMessage,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the rows of one message, an object per table of the lake."""
    key = find(lake, message)
    if key is None:
        raise not_found(f"message {message.text}")
    return lake.current(_events(lake, [key])[0])


@router.get("/events", responses={**documented(), **_EVENTS})
def events_of_transaction(lake: PublishedLake, query: Annotated[_OfTransaction, Query()]) -> Response:
    """Return every message that a transaction emitted."""
    spellings = read(identifiers.transaction_spellings, query.tx_id)
    return _list(lake, query, EventFilter(transactions=spellings), {"txId": query.tx_id})


@router.get("/recent", responses={**documented(), **_EVENTS})
def recent(lake: PublishedLake, query: Annotated[_Transfers, Query()]) -> Response:
    """Return the newest messages, by the time in their bodies; synthetic ones where `end` asks for them."""
    event_filter = EventFilter(
        query.start,
        query.end,
        query.chain,
        target_chain=query.target_chain,
        token=query.token_id(),
    )
    shown = query.model_dump(exclude={"page_size", "cursor", "sort"})
    return _list(lake, query, event_filter, shown)


def _list(
    lake: RequestLake, query: PageQuery, event_filter: EventFilter, filters: Mapping[str, Any]
) -> Response:
    page = lake.page(query, filters, positions=(Microseconds, Text))
    after = None if page.after is None else (_EPOCH + timedelta(microseconds=page.after[0]), page.after[1])
    keys, cursor = page.cut(
        list_events(lake, event_filter, page.size + 1, newest=query.sort == "newest", after=after), _position
    )
    if event_filter.transactions and not keys and not page.after:
        lacks(lake)
    return lake.current({"items": _events(lake, keys), **({"cursor": cursor} if cursor else {})})


def _position(key: EventKey) -> list[Any]:
    return [(key.timestamp - _EPOCH) // timedelta(microseconds=1), key.row_key]


def _events(lake: RequestLake, keys: Sequence[EventKey]) -> list[dict[str, Any]]:
    return [
        {
            "id": identifiers.of_row_key(key.row_key).text,
            **({"is_synthetic": True} if is_synthetic(key.date) else {}),
            **{
                name: [_shown(row) for row in rows] if name in _MANY else _shown(rows[0])
                for name, rows in rows_of.items()
            },
        }
        for key, rows_of in zip(keys, load(lake, keys), strict=True)
    ]


def _shown(row: Row) -> dict[str, Any]:
    return {name: json_value(value) for name, value in row.items()}


_NOTIONAL = ListedTable.of_table(tables.NOTIONAL_TRANSFERRED_DAILY)
_ADDRESSES = ListedTable.of_table(tables.ADDRESSES_DAILY)
_MESSAGES = ListedTable.of_table(tables.MESSAGES_DAILY)
_TVL = ListedTable.of_table(tables.TVL_DAILY)


@router.get("/notional-transferred", responses={**documented(), **answer(_NOTIONAL.page)})
def notional_transferred(lake: PublishedLake, query: Annotated[_Transfers, Query()]) -> Response:
    """Return transfers and their value by day, route and token."""
    token = query.token_id() or (None, None)
    filters = {
        "emitter_chain": query.chain,
        "target_chain": query.target_chain,
        "origin_chain": token[0],
        "origin_address": token[1],
    }
    return _page(lake, _NOTIONAL, query, filters)


@router.get("/addresses-transferred-to", responses={**documented(), **answer(_ADDRESSES.page)})
def addresses_transferred_to(lake: PublishedLake, query: Annotated[_ByTarget, Query()]) -> Response:
    """Return the number of distinct receivers by day and chain."""
    return _page(lake, _ADDRESSES, query, {"target_chain": query.target_chain})


@router.get("/totals", responses={**documented(), **answer(_MESSAGES.page)})
def totals(lake: PublishedLake, query: Annotated[_ByChain, Query()]) -> Response:
    """Return the number of messages by day and chain."""
    return _page(lake, _MESSAGES, query, {"emitter_chain": query.chain})


@router.get("/tvl", responses={**documented(), **answer(_TVL.page)})
def tvl(lake: PublishedLake, query: Annotated[_TokenDays, Query()]) -> Response:
    """Return what the bridges held at the end of each day, by token."""
    chain, address = (
        read(identifiers.token_id, query.token) if query.token is not None else (query.chain, None)
    )
    if query.chain is not None and query.chain != chain:
        return lake.current({"items": []})
    return _page(lake, _TVL, query, {"origin_chain": chain, "origin_address": address})


def _page(lake: RequestLake, table: ListedTable, query: _Dates, filters: Mapping[str, Any]) -> Response:
    given = {name: value for name, value in filters.items() if value is not None}
    return lake.current(table_page(lake, table, query, given, query.start, query.end))
