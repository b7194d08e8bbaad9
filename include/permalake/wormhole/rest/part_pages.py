"""Pages of one token, chain, corridor or application of Wormhole: what it is, and what moved over days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import ConfigDict
from starlette.responses import Response

from permalake.contracts.figures import DailyChart
from permalake.lake.serving import Scan
from permalake.web.daily_charts import chart_of
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.paging import NoQuery
from permalake.web.problems import not_found
from permalake.web.ranges import DayRange
from permalake.web.state import PublishedLake, RequestLake
from permalake.wormhole.contracts.analyst_views import PRICED_TRANSFERS, TOKEN_VOLUMES
from permalake.wormhole.contracts.chain_pages import COINS
from permalake.wormhole.contracts.figures import VALUE_LOCKED
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest import identifiers, links
from permalake.wormhole.rest.dependencies import BundledReference, read
from permalake.wormhole.rest.event_filter import EventFilter
from permalake.wormhole.rest.flows import (
    MovedPart,
    chain_name,
    chain_with_id,
    corridor_facts,
    corridors,
    tokens_by_value,
    total_usd,
)
from permalake.wormhole.rest.message_list import LISTED, newest_messages
from permalake.wormhole.rest.vaa_documents import native_token

router = page_router()
_SITE = Path(__file__).parent / "site"
_MOVED = (TOKEN_VOLUMES.name, *TOKEN_VOLUMES.tables)
_PRICED = (PRICED_TRANSFERS.name, *PRICED_TRANSFERS.tables)
_TRANSFERS = DailyChart(
    "Transfers",
    TOKEN_VOLUMES.name,
    (("transfers", "CAST(sum(transfers) AS BIGINT)"), ("valued", "CAST(sum(valued) AS BIGINT)")),
)
_USD = DailyChart("USD moved", TOKEN_VOLUMES.name, (("USD", "sum(CAST(notional_usd AS DOUBLE))"),), "usd")
_PRICE = DailyChart(
    "Price, mean of the day's transfers",
    PRICED_TRANSFERS.name,
    (("USD", "avg(CAST(token_price_usd AS DOUBLE))"),),
    "usd",
)
_APPLIED = (
    DailyChart("Messages", "applications_daily", (("messages", "CAST(sum(messages) AS BIGINT)"),)),
    DailyChart("USD moved", "applications_daily", (("USD", "sum(CAST(notional_usd AS DOUBLE))"),), "usd"),
)


class PartRange(NoQuery, DayRange):
    """Parameters of a page of one part over a range of days."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


@router.get("/token/{chain}/{address}")
def token(  # noqa: PLR0917
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    chain: str,
    address: str,
    query: Annotated[PartRange, Query()],
) -> Response:
    """Show a token: what it is, transfers, prices, value locked, corridors, newest messages."""
    number, word = read(identifiers.chain_id, chain), read(identifiers.emitter_address, address)
    part = MovedPart(
        "origin_chain = $chain AND origin_address = $address", {"chain": number, "address": word}
    )
    first, last = _days(lake, query)
    every = tokens_by_value(lake.kept_rows, date.min, date.max, reference, part)
    listed = reference.tokens.get((number, word))
    if not every and listed is None:
        raise not_found(f"token {number}:{word}")
    symbol = (listed and listed.symbol) or (every[0]["symbol"] if every else "")
    native = (listed and listed.native_address) or native_token(reference, number, word)
    facts = [
        ("Name", listed and listed.name),
        ("Symbol", symbol),
        ("Chain", chain_with_id(reference, number)),
        ("Address", native),
        ("Address, 32 bytes", word),
        ("Decimals", listed and listed.decimals),
        ("CoinGecko id", listed and listed.coingecko_id),
    ]
    charts = [
        part_chart(lake, _TRANSFERS, _MOVED, part, first, last),
        part_chart(lake, _USD, _MOVED, part, first, last),
        part_chart(lake, _PRICE, _PRICED, part, first, last),
        part_chart(lake, VALUE_LOCKED, ("tvl_daily",), part, first, last),
    ]
    content = {
        "kind": "Token",
        "messages_of": {"token": f"{number}:{word}"},
        "moved_of": {"token": f"{number}:{word}"},
        "name": symbol or word[-8:],
        "facts": facts,
        "links": {
            "Chain": links.of_chain(number),
            "Address": links.of_token(reference, number, word, native)[1:],
        },
        "recent": newest_messages(lake, reference, EventFilter(first, last, token=(number, word))),
    }
    return _shown(request, lake, reference, (first, last), part, charts, content)


@router.get("/chain/{chain}")
def chain(
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    chain: str,
    query: Annotated[PartRange, Query()],
) -> Response:
    """Show a chain: what it sent and received, corridors, tokens, newest messages."""
    number = read(identifiers.chain_id, chain)
    listed = reference.chains.get(number)
    part = MovedPart("$chain IN (emitter_chain, target_chain)", {"chain": number})
    first, last = _days(lake, query)
    sent = DailyChart(
        "Transfers",
        TOKEN_VOLUMES.name,
        (
            ("sent", "coalesce(CAST(sum(transfers) FILTER (emitter_chain = $chain) AS BIGINT), 0)"),
            ("received", "coalesce(CAST(sum(transfers) FILTER (target_chain = $chain) AS BIGINT), 0)"),
        ),
    )
    charts = [
        part_chart(lake, sent, _MOVED, part, first, last),
        part_chart(lake, _USD, _MOVED, part, first, last),
    ]
    recent = newest_messages(lake, reference, EventFilter(first, last, chain=number))
    if listed is None and not recent and not any(chart["days"] for chart in charts):
        raise not_found(f"chain {number}")
    content = {
        "kind": "Chain",
        "messages_of": {"chain": str(number)},
        "moved_of": {"either": str(number)},
        "name": chain_name(reference, number),
        "facts": [
            ("Wormhole chain id", number),
            ("Family", listed and listed.family),
            ("Native coin", COINS.get(number)),
            ("EVM chain id", listed and listed.evm_chain_id),
            ("Core contract", listed and listed.core),
        ],
        "links": {
            "Wormhole chain id": links.of_chain(number)[1:],
            "Core contract": links.of_account(reference, number, listed.core if listed else None)[1:],
        },
        "recent": recent,
    }
    return _shown(request, lake, reference, (first, last), part, charts, content)


@router.get("/corridor/{source}/{target}")
def corridor(  # noqa: PLR0917
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    source: str,
    target: str,
    query: Annotated[PartRange, Query()],
) -> Response:
    """Show a pair of chains: transfers from one to the other, tokens, newest messages."""
    numbers = read(identifiers.chain_id, source), read(identifiers.chain_id, target)
    part = MovedPart(
        "emitter_chain = $source AND target_chain = $target", {"source": numbers[0], "target": numbers[1]}
    )
    first, last = _days(lake, query)
    if not corridors(lake.kept_rows, date.min, date.max, part):
        raise not_found(f"corridor {numbers[0]} to {numbers[1]}")
    names = [chain_name(reference, number) for number in numbers]
    back = f"/wormhole/corridor/{numbers[1]}/{numbers[0]}"
    sides = {"chain": str(numbers[0]), "target": str(numbers[1])}
    charts = [part_chart(lake, chart, _MOVED, part, first, last) for chart in (_TRANSFERS, _USD)]
    event_filter = EventFilter(first, last, chain=numbers[0], target_chain=numbers[1])
    content = {
        "kind": "Corridor",
        "messages_of": sides,
        "moved_of": sides,
        "name": " to ".join(names),
        "facts": [
            ("From", chain_with_id(reference, numbers[0])),
            ("To", chain_with_id(reference, numbers[1])),
            ("The other way", f"{names[1]} to {names[0]}"),
        ],
        "links": {
            "From": links.of_chain(numbers[0]),
            "To": links.of_chain(numbers[1]),
            "The other way": [("", back)],
        },
        "recent": newest_messages(lake, reference, event_filter),
    }
    return _shown(request, lake, reference, (first, last), part, charts, content)


@router.get("/application/{app_id}")
def application(
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    app_id: str,
    query: Annotated[PartRange, Query()],
) -> Response:
    """Show an application: messages, value, newest messages."""
    part = MovedPart("app_id = $app", {"app": app_id})
    first, last = _days(lake, query)
    charts = [part_chart(lake, chart, ("applications_daily",), part, first, last) for chart in _APPLIED]
    if app_id not in links.APPLICATIONS and not any(chart["days"] for chart in charts):
        raise not_found(f"application {app_id}")
    content = {
        "kind": "Application",
        "messages_of": {"application": app_id},
        "moved_of": {},
        "name": links.APPLICATIONS.get(app_id, app_id),
        "facts": [("Id", app_id)],
        "links": {},
        "recent": newest_messages(lake, reference, EventFilter(first, last, app_id=app_id)),
    }
    return _shown(request, lake, reference, (first, last), None, charts, content)


def _days(lake: RequestLake, query: DayRange) -> tuple[date, date]:
    return query.of(lake.snapshot.days(lake.network, "messages_daily"))


def part_chart(  # noqa: PLR0917
    lake: RequestLake, chart: DailyChart, reads: Sequence[str], part: MovedPart, first: date, last: date
) -> dict[str, Any]:
    """Return a chart of the rows of a part alone; ``reads``: the tables and views below it."""
    sql = chart.sql.replace(" GROUP BY", f" AND {part.condition} GROUP BY")
    bound = {"first": first, "last": last, **part.values}
    rows = lake.kept_rows(sql, bound, **dict.fromkeys(reads, Scan(first, last)))
    return chart_of(lake, chart, rows, sql, bound)


def _shown(  # noqa: PLR0917
    request: Request,
    lake: RequestLake,
    reference: Reference,
    days: tuple[date, date],
    part: MovedPart | None,
    charts: list[dict[str, Any]],
    content: dict[str, Any],
) -> Response:
    first, last = days
    pairs = corridors(lake.kept_rows, first, last, part) if part else []
    content = {
        "network": lake.network,
        "start": first.isoformat(),
        "end": last.isoformat(),
        **content,
        "valued": sum(pair.valued for pair in pairs),
        "of": sum(pair.transfers for pair in pairs) if part else None,
        "total_usd": total_usd(pairs),
        "corridors": [] if content["kind"] == "Corridor" else corridor_facts(pairs, reference),
        "tokens": tokens_by_value(lake.kept_rows, first, last, reference, part)
        if part and content["kind"] in {"Chain", "Corridor"}
        else [],
        "listed": LISTED,
        "charts": [chart for chart in charts if chart["days"]],
    }
    return page(request, lake.snapshot.publication, "part.html", content, _SITE)
