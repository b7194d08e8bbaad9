"""Pages of an address of Wormhole: transfers that it sent or that name it as receiver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from permalake.lake.serving import Scan
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.problems import not_found
from permalake.web.state import PublishedLake, RequestLake
from permalake.web.synthetic import is_synthetic
from permalake.web.table_pages import json_value
from permalake.wormhole.contracts.analyst_views import PRICED_TRANSFERS
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest import identifiers, links
from permalake.wormhole.rest.dependencies import BundledReference, read
from permalake.wormhole.rest.event_filter import EventFilter
from permalake.wormhole.rest.flows import chain_name
from permalake.wormhole.rest.message_list import LISTED, newest_messages
from permalake.wormhole.rest.message_page import time_of
from permalake.wormhole.rest.part_pages import PartRange
from permalake.wormhole.rest.rows import Parameters, exact_sum, plain_decimal

router = page_router()
_SITE = Path(__file__).parent / "site"
_MOST = 10_000
"""Transfers of an address that its page sums up; its newest ones."""
_SIDES = ("sender_address", "receiver_address")


@router.get("/address/{address}")
def account(
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    address: str,
    query: Annotated[PartRange, Query()],
) -> Response:
    """Show an address: what it sent and received, by chain and token, and its messages."""
    spellings = read(identifiers.address_spellings, address)
    days = _days(lake, spellings)
    if not days:
        raise not_found(f"address {address}")
    first, last = query.start or days[0], query.end or days[-1]
    shown = [day for day in days if first <= day <= last]
    rows = _transfers(lake, spellings, shown)
    redeemed = _redemptions(lake, rows[:_MOST])
    moves = [
        {**_move(row, spellings, reference), "redeemed": redeemed.get(row["row_key"], "not asked")}
        for row in rows[:_MOST]
    ]
    chains = {row["emitter_chain"] for row in rows if row["sender_address"] in spellings}
    content = {
        "network": lake.network,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "address": address,
        "first_day": days[0].isoformat(),
        "last_day": days[-1].isoformat(),
        "complete": len(rows) <= _MOST,
        "sums": [_sum(moves, side) for side in ("sent", "received")],
        "explorers": [
            link for chain in sorted(chains) for link in links.of_account(reference, chain, address)[1:]
        ],
        "moves": moves,
        "statement": [line for row in reversed(rows[:_MOST]) for line in _statement(row, spellings)],
        "tokens": _by_token(moves),
        "listed": LISTED,
        "recent": newest_messages(lake, reference, EventFilter(first, last, addresses=spellings)),
    }
    return page(request, lake.snapshot.publication, "account.html", content, _SITE)


def is_account(lake: RequestLake, spellings: Sequence[str]) -> bool:
    """Return whether an address sent a message, or is named as receiver by one."""
    return bool(_days(lake, spellings))


def _days(lake: RequestLake, spellings: Sequence[str]) -> list[date]:
    """Return the days with a message of an address, by the index of both its sides."""
    places = (lake.find("chain_details", side, spelling).days for side in _SIDES for spelling in spellings)
    return sorted({day for days in places for day in days or ()})


def _transfers(lake: RequestLake, spellings: Sequence[str], days: Sequence[date]) -> list[dict[str, Any]]:
    """Return the transfers of an address on some days, newest first, one more than the page sums up."""
    if not days:
        return []
    bound = Parameters()
    names = bound.add_all(spellings)
    scans = dict.fromkeys((PRICED_TRANSFERS.name, *PRICED_TRANSFERS.tables), Scan(days=frozenset(days)))
    return lake.rows(
        f"SELECT * FROM {PRICED_TRANSFERS.name} WHERE sender_address IN ({names}) "  # noqa: S608
        f"OR receiver_address IN ({names}) ORDER BY timestamp DESC, row_key LIMIT {_MOST + 1}",
        bound,
        **scans,
    )


def _redemptions(lake: RequestLake, transfers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what was last told of the redemption of transfers, in words, by row key."""
    if not transfers or not lake.snapshot.table(lake.network, "redemptions"):
        return {}
    rows = lake.rows(
        "SELECT row_key, bool_or(status = 'completed') AS is_completed, max(redeemed_at) AS redeemed_at, "
        "arg_max(status, asked_at) AS status FROM redemptions "
        "WHERE row_key IN (SELECT unnest($row_keys)) GROUP BY row_key",
        {"row_keys": [row["row_key"] for row in transfers]},
        redemptions=Scan(days=frozenset(row["date"] for row in transfers)),
    )
    return {
        row["row_key"]: (time_of(row["redeemed_at"]) if row["redeemed_at"] else "yes")
        if row["is_completed"]
        else row["status"].replace("_", " ")
        for row in rows
    }


def _move(row: Mapping[str, Any], spellings: Sequence[str], reference: Reference) -> dict[str, Any]:
    """Return a transfer as its address sees it; one to itself counts as sent."""
    is_sent = row["sender_address"] in spellings
    usd, stand_in_usd = row["notional_usd"], row["stand_in_notional_usd"]
    return {
        "time": time_of(row["timestamp"]),
        "is_synthetic": is_synthetic(row["date"]),
        "side": "sent" if is_sent else "received",
        "amount": row["amount_text"],
        "symbol": row["symbol"] or row["origin_address"][-8:],
        "usd": None if usd is None else plain_decimal(usd),
        "no_value_because": row["reason_text"] if usd is None else None,
        "stand_in_usd": None if stand_in_usd is None else plain_decimal(stand_in_usd),
        "stand_in": row["stand_in"],
        "counterparty": row["receiver_address"] if is_sent else row["sender_address"],
        "source": chain_name(reference, row["emitter_chain"]),
        "target": chain_name(reference, row["target_chain"]),
        "message": identifiers.of_row_key(row["row_key"]).text,
        "transaction": row["transaction_id"],
        "token": f"{row['origin_chain']}/{row['origin_address']}",
    }


def _statement(row: Mapping[str, Any], spellings: Sequence[str]) -> list[dict[str, Any]]:
    """Return a transfer as ``permalake statement`` has it; one to itself is sent and received."""
    sides = (("sent", -1, "sender_address"), ("received", 1, "receiver_address"))
    return [
        {
            "time": json_value(row["timestamp"]),
            **{name: row[name] for name in ("row_key", "transaction_id")},
            "side": side,
            **{name: row[name] for name in ("emitter_chain_name", "target_chain_name", "symbol")},
            **{name: _signed(row[name], sign) for name in ("amount", "notional_usd")},
            "token_price_usd": json_value(row["token_price_usd"]),
            "price_source": row["price_source"],
            "no_value_because": row["reason"],
            "stand_in_notional_usd": _signed(row["stand_in_notional_usd"], sign),
            "stand_in_price_usd": json_value(row["stand_in_price_usd"]),
            "stand_in": row["stand_in"],
            "counterparty": row["receiver_address" if side == "sent" else "sender_address"],
            **{name: row[name] for name in ("origin_chain_name", "origin_address")},
        }
        for side, sign, own_column in sides
        if row[own_column] in spellings
    ]


def _signed(value: Decimal | None, sign: int) -> str | None:
    return None if value is None else f"{sign * value:f}"


def _sum(moves: Sequence[Mapping[str, Any]], side: str) -> dict[str, Any]:
    """Return how many transfers there are on a side, how many have a value, and its sum."""
    chosen = [move for move in moves if move["side"] == side]
    values = [Decimal(move["usd"]) for move in chosen if move["usd"] is not None]
    return {
        "side": side,
        "transfers": len(chosen),
        "valued": len(values),
        "usd": plain_decimal(exact_sum(values)) if values else None,
    }


def _by_token(moves: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return transfers and values by token, those most often moved first."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for move in moves:
        grouped.setdefault(move["token"], []).append(move)
    tokens = []
    for token, token_moves in grouped.items():
        sent, received = (_sum(token_moves, side) for side in ("sent", "received"))
        tokens.append(
            {
                "token": token,
                "symbol": token_moves[0]["symbol"],
                "sent": sent["transfers"],
                "received": received["transfers"],
                "sent_usd": sent["usd"],
                "received_usd": received["usd"],
            }
        )
    return sorted(tokens, key=lambda token: -(token["sent"] + token["received"]))
