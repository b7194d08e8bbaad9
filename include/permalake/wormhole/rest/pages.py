"""Pages of Wormhole: flows between chains, and a message with all that is known of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from permalake.web.charts import sankey
from permalake.web.daily_charts import daily_chart
from permalake.web.head import HeadRoute
from permalake.web.html import go_to, page
from permalake.web.numbers import dollars
from permalake.web.page_router import page_router
from permalake.web.paging import NoQuery
from permalake.web.problems import bad_request, not_found
from permalake.web.ranges import FIRST_DAY, DayRange
from permalake.web.state import PublishedLake, RequestLake, lacks
from permalake.wormhole.contracts.analyst_views import TOKEN_VOLUMES
from permalake.wormhole.contracts.figures import CHARTS
from permalake.wormhole.rest import identifiers
from permalake.wormhole.rest.account_page import is_account
from permalake.wormhole.rest.dependencies import BundledReference, read
from permalake.wormhole.rest.events import EventFilter, find, load
from permalake.wormhole.rest.flows import (
    CORRIDORS,
    TOKENS,
    Corridor,
    corridor_facts,
    corridors,
    largest_flows,
    matrix,
    tokens_by_value,
    total_usd,
)
from permalake.wormhole.rest.message_list import LISTED, newest_messages
from permalake.wormhole.rest.message_page import described
from permalake.wormhole.rest.search import named, symbols

router = page_router(route_class=HeadRoute)
_SITE = Path(__file__).parent / "site"
_FLOWS = 30
_FLOWS_TABLE = TOKEN_VOLUMES.name


class _FlowsQuery(NoQuery, DayRange):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    q: str | None = Field(None, max_length=400, description="Message id, transaction, address or token.")


@router.get("")
def flows(
    request: Request, lake: PublishedLake, reference: BundledReference, query: Annotated[_FlowsQuery, Query()]
) -> Response:
    """Show flows between chains in USD, corridors, top tokens and daily figures."""
    if query.q:
        return _search(request, lake, reference, query.q.strip())
    first, last = query.of(lake.snapshot.days(lake.network, "messages_daily"))
    pairs = corridors(lake.kept_rows, first, last)
    drawn = [pair for pair in pairs if pair.usd]
    valued = sum(pair.valued for pair in pairs)
    data = f"/api/analytics/v1/{lake.network}/{_FLOWS_TABLE}?start={first}&end={last}&format="
    charts = [daily_chart(lake, chart, first, last) for chart in CHARTS]
    content = {
        "network": lake.network,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "total_usd": total_usd(pairs),
        "valued": valued,
        "of": sum(pair.transfers for pair in pairs),
        "sankey": _drawn(drawn, reference),
        "shown_flows": min(len(drawn), _FLOWS),
        "flows": len(drawn),
        "corridors": corridor_facts(pairs, reference),
        "matrix": matrix(pairs, reference) if valued else None,
        "tokens": tokens_by_value(lake.kept_rows, first, last, reference),
        "listed": LISTED,
        "charts": [chart for chart in charts if chart["days"]],
        "recent": _recent(lake, reference, first, last, is_chosen=bool(query.start or query.end)),
        "sql": {"corridors": _statement(CORRIDORS, first, last), "tokens": _statement(TOKENS, first, last)},
        "csv": data + "csv",
        "parquet": data + "parquet",
    }
    return page(request, lake.snapshot.publication, "flows.html", content, _SITE)


def _recent(
    lake: RequestLake, reference: BundledReference, first: date, last: date, *, is_chosen: bool
) -> list[dict[str, Any]]:
    """Newest messages of a range; those of the range that the page opens with are kept."""

    def listed() -> list[dict[str, Any]]:
        return newest_messages(lake, reference, EventFilter(start=first, end=last))

    return listed() if is_chosen else lake.once("newest messages", listed)


def _statement(sql: str, first: date, last: date) -> str:
    named = sql.replace(f"FROM {_FLOWS_TABLE}", f"FROM wormhole.{_FLOWS_TABLE}")
    return named.replace("$first", f"'{first}'").replace("$last", f"'{last}'")


def _drawn(pairs: list[Corridor], reference: BundledReference) -> Any:
    flows = largest_flows(pairs, reference, _FLOWS)
    return sankey(flows, label=dollars, title="Flows between chains in US dollars") if flows else None


def _search(request: Request, lake: RequestLake, reference: BundledReference, text: str) -> Response:
    """Go to the message that the text names, else to the address's page, else list what matches."""
    parts = text.replace(":", "/").split("/")
    if len(parts) == 3:
        message = read(identifiers.message_id, *parts)
        return go_to(request, f"/{lake.network}/vaa/{message.text}")
    token = read(identifiers.token_id, ":".join(parts)) if len(parts) == 2 else None
    if token:
        messages = newest_messages(lake, reference, EventFilter(token=token))
    else:
        tokens = symbols(lake).get(text.upper())
        try:
            filters, spellings = named(lake, text), identifiers.address_spellings(text)
        except ValueError as error:
            if not tokens:
                raise bad_request(str(error)) from None
            return _go_to_token(request, lake.network, text, tokens)
        messages = next(
            filter(None, (newest_messages(lake, reference, event_filter) for event_filter in filters)), []
        )
        if not messages and is_account(lake, spellings):
            return go_to(request, f"/{lake.network}/address/{quote(text, safe='')}")
        if not messages and tokens:
            return _go_to_token(request, lake.network, text, tokens)
    if not messages:
        lacks(lake)
    content = {
        "network": lake.network,
        "query": text,
        "found": messages,
        "listed": LISTED,
        "token": f"{lake.network}/token/{token[0]}/{token[1]}" if token and messages else None,
    }
    return page(request, lake.snapshot.publication, "search.html", content, _SITE)


def _go_to_token(request: Request, network: str, symbol: str, tokens: list[tuple[int, str]]) -> Response:
    """Go to the token of a symbol; anybody may use a symbol, so where several do, to their list."""
    if len(tokens) > 1:
        return go_to(request, f"/{network}/tokens", token=symbol, start=FIRST_DAY)
    [(chain, address)] = tokens
    return go_to(request, f"/{network}/token/{chain}/{address}", start=FIRST_DAY)


@router.get("/vaa/{chain}/{emitter}/{sequence}")
def vaa(  # noqa: PLR0917
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    chain: str,
    emitter: str,
    sequence: str,
) -> Response:
    """Show a message: guardians, decoded payload, price, sender, receiver and resulting token."""
    message = read(identifiers.message_id, chain, emitter, sequence)
    key = find(lake, message)
    if key is None:
        raise not_found(f"message {message.text}")
    content = {
        "network": lake.network,
        **described(load(lake, [key])[0], reference),
        "previous": _neighbour(lake, message, -1),
        "next": _neighbour(lake, message, 1),
    }
    return page(request, lake.snapshot.publication, "vaa.html", content, _SITE)


def _neighbour(lake: RequestLake, message: identifiers.MessageId, step: int) -> str | None:
    """Return the id of the emitter's message before or after one; None where it is not published."""
    sequence = message.sequence + step
    if not 0 <= sequence < 2**64:
        return None
    other = identifiers.MessageId(message.chain, message.emitter, sequence)
    return other.text if find(lake, other) else None
