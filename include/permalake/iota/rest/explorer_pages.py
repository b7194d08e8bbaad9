"""Pages of an IOTA network: search, message, transaction, milestone, day, output, address and tag."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import ConfigDict, Field
from starlette.responses import FileResponse, Response

from permalake.iota.rest import ledger, page_facts
from permalake.iota.rest.browser_proof import browser_proof
from permalake.iota.rest.chain_facts import chain_facts, is_known
from permalake.iota.rest.chain_states import CHAINS
from permalake.iota.rest.core_v2 import milestone_by_id
from permalake.iota.rest.day_facts import day_facts
from permalake.iota.rest.known_networks import coin
from permalake.iota.rest.list_pages import is_nft_name
from permalake.iota.rest.messages import protocol_of
from permalake.iota.rest.parameters import Index, bech32_address
from permalake.iota.rest.token_facts import is_token
from permalake.iota.rest.transaction_facts import is_transaction, transaction_facts
from permalake.web.head import HeadRoute
from permalake.web.html import go_to, page
from permalake.web.page_router import page_router
from permalake.web.paging import NoQuery
from permalake.web.parameter_types import MAX_TAG_BYTES, hex_id, output_id, tag_hex
from permalake.web.problems import ProblemError, not_found
from permalake.web.ranges import FIRST_DAY
from permalake.web.state import PublishedLake, RequestLake, lacks

router = page_router(route_class=HeadRoute)
_SITE = Path(__file__).parent / "site"
_SCRIPTS = ("verify.js", "proof.js", "blake2b.js")
_DIGITS = 10
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class _Search(NoQuery):
    model_config = ConfigDict(extra="ignore")

    q: str = Field("", max_length=400)


@router.get("")
def search(request: Request, lake: PublishedLake, query: Annotated[_Search, Query()]) -> Response:
    """Go to what the text names: milestone index, day, id of any kind, address, or tag as text or hex.

    A text that names several, such as a tag of digits, gets a page with a link to each.
    """
    text = query.q.strip()
    places = list(dict.fromkeys(_places(lake, text))) if text else []
    if text and not places:
        lacks(lake)
    if len(places) == 1:
        return go_to(request, f"/{lake.network}/explore/{places[0]}")
    if text and not places and is_nft_name(lake, text):
        return go_to(request, f"/{lake.network}/explore/nfts", name=text, start=FIRST_DAY)
    links = [dict(zip(("kind", "name"), place.split("/", 1), strict=True)) for place in places]
    content = {
        "network": lake.network,
        "query": text,
        "places": links,
        "has_nfts": protocol_of(lake) == "stardust",
    }
    return page(request, lake.snapshot.publication, "search.html", content, _SITE)


def finds(lake: RequestLake, text: str) -> bool:
    """Return whether the search finds something of that name."""
    return any(_places(lake, text)) or is_nft_name(lake, text)


def _places(lake: RequestLake, text: str) -> Iterator[str]:
    """Yield the paths of the pages that a text names, below the explorer's."""
    bare = text.lower().removeprefix("0x")
    if (
        text.isascii()
        and text.isdigit()
        and len(text) <= _DIGITS
        and _exists(ledger.milestone, lake, int(text))
    ):
        yield f"milestone/{int(text)}"
    if _DAY.fullmatch(text) and text in {
        day.isoformat() for day in lake.snapshot.days(lake.network, "date_cache")
    }:
        yield f"day/{text}"
    if text.lower().startswith(f"{lake.settings.network(lake.network).bech32_hrp}1"):
        yield f"address/{text.lower()}"
    is_hex = bool(bare) and len(bare) % 2 == 0 and all(letter in "0123456789abcdef" for letter in bare)
    if is_hex and (place := _by_id(lake, bare)):
        yield place
    for tag in ([bare] if is_hex else []) + [text.encode().hex()]:
        if 0 < len(tag) <= 2 * MAX_TAG_BYTES and not lake.find("tags", "tag", tag).is_empty:
            yield f"tag/{tag}"


def _by_id(lake: RequestLake, bare: str) -> str | None:
    if len(bare) == 64:
        return _by_hash(lake, bare)
    if len(bare) == 68 and _exists(ledger.output, lake, bare):
        return f"output/{bare}"
    is_found = len(bare) == 76 and (is_known(lake, "foundry", bare) or is_token(lake, bare))
    return f"foundry/{bare}" if is_found else None


def _by_hash(lake: RequestLake, bare: str) -> str | None:
    if _exists(ledger.any_message, lake, bare):
        return f"message/{bare}"
    if is_transaction(lake, bare):
        return f"transaction/{bare}"
    if milestone := _exists(milestone_by_id, lake, bare):
        return f"milestone/{milestone['milestone_index']}"
    return next((f"{kind}/{bare}" for kind in ("alias", "nft") if is_known(lake, kind, bare)), None)


def _exists(read: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except ProblemError as problem:
        if problem.status == 404:
            return None
        raise


@router.get("/message/{message_id}")
def message(request: Request, lake: PublishedLake, message_id: str) -> Response:
    """Show a message or block."""
    facts = page_facts.message_facts(lake, ledger.any_message(lake, hex_id(message_id, "messageId")))
    return _shown(request, lake, "message.html", facts, scripts=True)


@router.get("/message/{message_id}/proof")
def message_proof(lake: PublishedLake, message_id: str) -> Response:
    """Return what a browser needs to check that a milestone references a message."""
    proof = browser_proof(lake, ledger.message(lake, hex_id(message_id, "messageId")))
    return lake.current(proof)


@router.get("/scripts/{name}")
def script(name: str) -> Response:
    """Return a script of the message's page."""
    if name not in _SCRIPTS:
        raise ProblemError(404, "no such route")
    return FileResponse(_SITE / name, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


@router.get("/milestone/{index}")
def milestone(request: Request, lake: PublishedLake, index: Index) -> Response:
    """Show a milestone, with links to those beside it that are published."""
    facts = page_facts.milestone_facts(lake, ledger.milestone(lake, index))
    for name, other in (("previous", index - 1), ("next", index + 1)):
        facts[name] = other if other > 0 and _exists(ledger.milestone, lake, other) else None
    return _shown(request, lake, "milestone.html", facts)


@router.get("/transaction/{transaction_id}")
def transaction(request: Request, lake: PublishedLake, transaction_id: str) -> Response:
    """Show a transaction with every message that carries it."""
    facts = transaction_facts(lake, hex_id(transaction_id, "transactionId"))
    return _shown(request, lake, "transaction.html", facts)


@router.get("/day/{day}")
def day(request: Request, lake: PublishedLake, day: date) -> Response:
    """Show a day: its milestones, hours and tags."""
    return _shown(request, lake, "day.html", day_facts(lake, day, coin(lake.settings, lake.network)))


@router.get("/output/{requested_id}")
def output(request: Request, lake: PublishedLake, requested_id: str) -> Response:
    """Show an output."""
    facts = page_facts.output_facts(lake, ledger.output(lake, output_id(requested_id)))
    return _shown(request, lake, "output.html", facts)


@router.get("/address/{text}")
def address(request: Request, lake: PublishedLake, text: str) -> Response:
    """Show an address with its newest outputs."""
    bech32_address(text, lake.settings.network(lake.network))
    facts = page_facts.address_facts(lake, text.lower())
    days = [day.isoformat() for day in lake.snapshot.days(lake.network, "milestones")]
    facts |= {"first_day": min(days, default=""), "last_day": max(days, default="")}
    return _shown(request, lake, "address.html", facts)


@router.get("/tag/{tag}")
def tag(request: Request, lake: PublishedLake, tag: str) -> Response:
    """Show the newest messages with a tag."""
    facts = page_facts.tag_facts(lake, tag_hex(tag, "tag"))
    if not facts["messages"]:
        raise not_found(f"tag {facts['tag']}")
    return _shown(request, lake, "tag.html", facts)


# Last: its path matches those above.
@router.get("/{kind}/{chain_id}")
def chain(
    request: Request, lake: PublishedLake, kind: Literal["alias", "nft", "foundry"], chain_id: str
) -> Response:
    """Show an alias, NFT or foundry with its states."""
    facts = chain_facts(lake, kind, hex_id(chain_id, f"{kind}Id", CHAINS[kind][1]))
    return _shown(request, lake, "chain.html", facts)


def _shown(
    request: Request, lake: RequestLake, template: str, facts: dict[str, Any], *, scripts: bool = False
) -> Response:
    content = {"network": lake.network, "coin": coin(lake.settings, lake.network), "found": facts}
    return page(request, lake.snapshot.publication, template, content, _SITE, scripts=scripts)
