"""Lists of Wormhole with filters: messages, corridors and tokens, sorted by any column."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from permalake.lake.serving import Scan
from permalake.web.html import page
from permalake.web.list_pages import ListColumn, ListField, ListQuery, PageList
from permalake.web.page_router import page_router
from permalake.web.parameter_types import decimal_number
from permalake.web.problems import bad_request
from permalake.web.state import PublishedLake, RequestLake
from permalake.web.synthetic import is_synthetic
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest import identifiers, links
from permalake.wormhole.rest.dependencies import BundledReference, read
from permalake.wormhole.rest.flows import (
    EVERYTHING_MOVED,
    MovedPart,
    chain_name,
    corridor_facts,
    corridors,
    tokens_by_value,
)
from permalake.wormhole.rest.message_page import time_of
from permalake.wormhole.rest.rows import Parameters

router = page_router()
_MESSAGES = (
    ListColumn("time", "Time, UTC", "time"),
    ListColumn("source", "From"),
    ListColumn("target", "To"),
    ListColumn("application", "Application"),
    ListColumn("symbol", "Token"),
    ListColumn("amount", "Amount", "figure", sorts=False),
    ListColumn("usd", "USD", "usd"),
    ListColumn("message", "Message", "id", sorts=False),
)
_ORDERED = {
    "time": "p.timestamp",
    "source": "p.emitter_chain",
    "target": "t.target_chain",
    "application": "a.app_id",
    "symbol": "d.origin_symbol",
    "usd": "d.notional_usd",
}
_SIDES = (ListColumn("source", "From"), ListColumn("target", "To"))
_SUMS = (
    ListColumn("transfers", "Transfers", "figure"),
    ListColumn("valued", "Valued", "figure"),
    ListColumn("usd", "USD", "usd"),
)
_TOKEN = (ListColumn("symbol", "Token"), ListColumn("chain", "Chain"), ListColumn("address", "Address", "id"))
_TABLES = {
    "message_publication": "p",
    "token_transfer_payload": "t",
    "token_transfer_details": "d",
    "application_messages": "a",
}


class _ChainQuery(ListQuery):
    chain: str = Field("", max_length=80)
    target: str = Field("", max_length=80)
    token: str = Field("", max_length=200)
    either: str = Field("", max_length=80, description="A chain that sent or received.")


class _VaaListQuery(_ChainQuery):
    application: str = Field("", max_length=80)
    minimum: str = Field("", max_length=40)
    maximum: str = Field("", max_length=40)


@router.get("/messages")
def messages(
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    query: Annotated[_VaaListQuery, Query()],
) -> Response:
    """List messages by chains, token, application and value."""
    shown = PageList(request, query, _MESSAGES, "-time")
    first, last = query.of(lake.snapshot.days(lake.network, "messages_daily"))
    rows = _messages(lake, query, shown, first, last)
    fields = [
        *_chain_fields(lake, reference, query),
        ListField("application", "Application", query.application, _applications(lake)),
        ListField("minimum", "USD at least", query.minimum),
        ListField("maximum", "USD at most", query.maximum),
    ]
    content = {
        **_of(lake, first, last),
        "title": "Messages",
        "about": "Verified messages of these days. A message without a value stands behind those with one.",
        **shown.content(fields, [_message(row, reference) for row in rows], _message_links),
    }
    return page(request, lake.snapshot.publication, "list.html", content)


@router.get("/corridors")
def all_corridors(
    request: Request, lake: PublishedLake, reference: BundledReference, query: Annotated[_ChainQuery, Query()]
) -> Response:
    """List pairs of chains with what moved between them."""
    shown = PageList(request, query, (*_SIDES, *_SUMS), "-usd")
    first, last = query.of(lake.snapshot.days(lake.network, "messages_daily"))
    facts = corridor_facts(corridors(lake.kept_rows, first, last, _part(query)), reference)
    content = {
        **_of(lake, first, last),
        "title": "Corridors",
        "about": "Token transfers between chains. USD is the sum of the transfers that have a value.",
        **shown.content(_chain_fields(lake, reference, query), shown.part(facts), _corridor_links),
    }
    return page(request, lake.snapshot.publication, "list.html", content)


@router.get("/tokens")
def all_tokens(
    request: Request, lake: PublishedLake, reference: BundledReference, query: Annotated[_ChainQuery, Query()]
) -> Response:
    """List tokens with what of them moved."""
    shown = PageList(request, query, (*_TOKEN, *_SUMS), "-usd")
    first, last = query.of(lake.snapshot.days(lake.network, "messages_daily"))
    tokens = tokens_by_value(lake.kept_rows, first, last, reference, _part(query))
    content = {
        **_of(lake, first, last),
        "title": "Tokens",
        "about": "Tokens that the token bridge moved. USD is the sum of the transfers that have a value.",
        **shown.content(
            _chain_fields(lake, reference, query),
            shown.part(tokens),
            lambda row: _token_links(row, f"?start={first}&end={last}"),
        ),
    }
    return page(request, lake.snapshot.publication, "list.html", content)


def _of(lake: RequestLake, first: date, last: date) -> dict[str, Any]:
    return {
        "network": lake.network,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "above": {"name": "Flows", "path": f"/{lake.network}?start={first}&end={last}"},
    }


def _messages(
    lake: RequestLake, query: _VaaListQuery, shown: PageList, first: date, last: date
) -> list[dict[str, Any]]:
    bound = Parameters(first=first, last=last)
    conditions = ["p.date BETWEEN $first AND $last"]
    if query.chain:
        conditions.append(f"p.emitter_chain = {bound.add(read(identifiers.chain_id, query.chain))}")
    if query.target:
        conditions.append(f"t.target_chain = {bound.add(read(identifiers.chain_id, query.target))}")
    if query.either:
        name = bound.add(read(identifiers.chain_id, query.either))
        conditions.append(f"{name} IN (p.emitter_chain, t.target_chain)")
    if query.token:
        conditions.append(
            _of_token(query.token, bound, "t.origin_chain", "t.origin_address", "d.origin_symbol")
        )
    if query.application:
        name = bound.add(query.application)
        conditions.append(f"(a.app_id = {name} OR a.carrier_app_id = {name})")
    for text, sign, name in ((query.minimum, ">=", "minimum"), (query.maximum, "<=", "maximum")):
        if text:
            conditions.append(f"d.notional_usd {sign} {bound.add(_usd(text, name))}")
    joined = " ".join(
        f"LEFT JOIN {table} {alias} ON {alias}.date = p.date AND {alias}.row_key = p.row_key"
        for table, alias in _TABLES.items()
        if alias != "p"
    )
    return lake.rows(
        "SELECT p.row_key, p.date, p.timestamp, p.emitter_chain, t.target_chain, t.origin_chain, "  # noqa: S608
        "t.origin_address, d.origin_symbol, d.amount, d.notional_usd, a.app_id FROM message_publication p "
        f"{joined} WHERE {' AND '.join(conditions)} "
        f"ORDER BY {_ORDERED[shown.column]} {shown.direction}, p.row_key "
        f"LIMIT {shown.limit + 1} OFFSET {shown.skip}",
        bound,
        **dict.fromkeys(_TABLES, Scan(first, last)),
    )


def _usd(text: str, name: str) -> Decimal:
    value = decimal_number(text.removeprefix("$"), name)
    if not value.is_finite() or abs(value) >= Decimal(10) ** 29:
        raise bad_request(f"{name}: {text} is no amount of US dollars")
    return value


def _of_token(text: str, bound: Parameters, chain: str, address: str, symbol: str) -> str:
    """Return the condition on a token, given as ``CHAIN:ADDRESS`` or by its symbol."""
    if ":" not in text:
        return f"upper({symbol}) = upper({bound.add(text)})"
    number, word = read(identifiers.token_id, text)
    return f"({chain} = {bound.add(number)} AND {address} = {bound.add(word)})"


def _part(query: _ChainQuery) -> MovedPart:
    """Return which transfers count for corridors and tokens."""
    bound = Parameters()
    conditions = []
    for text, column in ((query.chain, "emitter_chain"), (query.target, "target_chain")):
        if text:
            conditions.append(f"{column} = {bound.add(read(identifiers.chain_id, text))}")
    if query.either:
        name = bound.add(read(identifiers.chain_id, query.either))
        conditions.append(f"{name} IN (emitter_chain, target_chain)")
    if query.token:
        conditions.append(_of_token(query.token, bound, "origin_chain", "origin_address", "symbol"))
    return MovedPart(" AND ".join(conditions), bound) if conditions else EVERYTHING_MOVED


def _chain_fields(lake: RequestLake, reference: Reference, query: _ChainQuery) -> list[ListField]:
    return [
        _chain_field(lake, reference, "chain", "From chain", query.chain),
        _chain_field(lake, reference, "target", "To chain", query.target),
        *([_chain_field(lake, reference, "either", "From or to", query.either)] if query.either else []),
        ListField("token", "Token, symbol or CHAIN:ADDRESS", query.token),
    ]


def _chain_field(lake: RequestLake, reference: Reference, name: str, label: str, value: str) -> ListField:
    """Return the choice among the chains that have sent a message; one that was asked for is among them."""
    rows = lake.kept_rows("SELECT DISTINCT emitter_chain AS id FROM messages_daily", messages_daily=Scan())
    numbers = {row["id"] for row in rows}
    chosen = str(read(identifiers.chain_id, value)) if value else ""
    numbers |= {int(chosen)} if chosen else set()
    named = sorted((chain_name(reference, number), str(number)) for number in numbers)
    return ListField(name, label, chosen, (("", "any"), *((number, text) for text, number in named)))


def _applications(lake: RequestLake) -> tuple[tuple[str, str], ...]:
    rows = lake.kept_rows(
        "SELECT DISTINCT app_id FROM applications_daily ORDER BY 1", applications_daily=Scan()
    )
    ids = [row["app_id"] for row in rows]
    return (("", "any"), *((app_id, links.APPLICATIONS.get(app_id, app_id)) for app_id in ids))


def _message(row: Mapping[str, Any], reference: Reference) -> dict[str, Any]:
    value, target = row["notional_usd"], row["target_chain"]
    return {
        "time": time_of(row["timestamp"]),
        "is_synthetic": is_synthetic(row["date"]),
        "source": chain_name(reference, row["emitter_chain"]),
        "target": None if target is None else chain_name(reference, target),
        "application": links.APPLICATIONS.get(row["app_id"], row["app_id"]),
        "symbol": row["origin_symbol"] or (row["origin_address"] or "")[-8:],
        "amount": row["amount"],
        "usd": None if value is None else format(value, "f"),
        "message": identifiers.of_row_key(row["row_key"]).text,
        "source_id": row["emitter_chain"],
        "target_id": target,
        "app_id": row["app_id"],
        "token": None if row["origin_chain"] is None else f"{row['origin_chain']}/{row['origin_address']}",
    }


def _message_links(row: Mapping[str, Any]) -> dict[str, str]:
    paths = {
        "message": f"/wormhole/vaa/{row['message']}",
        "source": f"/wormhole/chain/{row['source_id']}",
        "target": f"/wormhole/chain/{row['target_id']}" if row["target_id"] is not None else "",
        "application": f"/wormhole/application/{row['app_id']}" if row["app_id"] else "",
        "symbol": f"/wormhole/token/{row['token']}" if row["token"] else "",
    }
    return {name: path for name, path in paths.items() if path}


def _corridor_links(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the links of a corridor: to its page by its figures, to its chains by their names."""
    corridor = f"/wormhole/corridor/{row['source_id']}/{row['target_id']}"
    sides = {name: f"/wormhole/chain/{row[f'{name}_id']}" for name in ("source", "target")}
    return {**sides, "transfers": corridor, "usd": corridor}


def _token_links(row: Mapping[str, Any], days: str) -> dict[str, str]:
    """Return the links of a token: to its page over the days of the list, and to its chain."""
    token = f"/wormhole/token/{row['chain_id']}/{row['address']}{days}"
    return {"symbol": token, "address": token, "chain": f"/wormhole/chain/{row['chain_id']}"}
