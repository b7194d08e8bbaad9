"""Routes of the permanode's own prefix, for networks of either protocol (chronicle.rs)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.codec.bech32 import encode_address
from permalake.iota.codec.milestones import milestone_id
from permalake.iota.rest import ledger
from permalake.iota.rest.addresses import AddressOutputs, Bech32, Ed25519, OutputsQuery, unspent_or_all
from permalake.iota.rest.core_v2 import milestone_by_id, milestone_payload
from permalake.iota.rest.holdings import OWNERS
from permalake.iota.rest.messages import protocol_of
from permalake.iota.rest.parameters import MAX_INDEX, NodePage, bech32_address
from permalake.iota.rest.stardust_answers import MilestoneIndex, StardustMilestone
from permalake.lake.serving import Scan
from permalake.web.answers import Bytes32, Count, Cursor, Enveloped, Seconds, answer, json_or_raw
from permalake.web.head import HeadRoute
from permalake.web.paging import ListPage, Nothing
from permalake.web.parameter_types import hex_id
from permalake.web.problems import bad_request, documented
from permalake.web.state import PublishedLake, RequestLake

router = APIRouter(tags=["permanode"], responses=documented(), route_class=HeadRoute)
_RANGES = 5000


class OwnedQuery(OutputsQuery):
    """Query of an address's outputs, of any kind; ``type`` tells two kinds of Chrysalis apart."""

    include_spent: bool = Field(True, alias="include-spent", description="Spent outputs too.")


class RangesQuery(NodePage):
    """Query of the activity of ranges of milestones."""

    start: int = Field(0, ge=0, le=MAX_INDEX, description="First milestone.")
    end: int = Field(MAX_INDEX, ge=0, le=MAX_INDEX, description="The milestone behind the last one.")


class MilestoneQuery(NodePage):
    """Query of a milestone's messages, which come in white-flag order; ``newest`` reverses it."""

    sort: Literal["newest", "oldest"] = Field("oldest", description="Order of the messages.")


MilestonePart = Annotated[
    str,
    Path(
        alias="index",
        description="Index of a milestone; its id on Stardust.",
        examples=["17339"],
        json_schema_extra={"pattern": "^([0-9]{1,9}|(0[xX])?[0-9a-fA-F]{64})$"},
    ),
]


class MilestoneMessages(TypedDict):
    """A milestone, and a page of the messages that it references, in white-flag order."""

    index: MilestoneIndex
    messageId: Bytes32 | None
    timestamp: Seconds
    milestoneId: Bytes32
    count: Count
    messageIds: list[Bytes32]
    cursor: NotRequired[Cursor]


class MilestoneRange(TypedDict):
    """A range of milestones; ``end`` is the one behind the last."""

    start: MilestoneIndex
    end: Count


class SyncState(TypedDict):
    """Published ranges of milestones, and the gaps between them, newest first."""

    completed: list[MilestoneRange]
    synced_but_unlogged: list[MilestoneRange]
    gaps: list[MilestoneRange]


class RangeActivity(TypedDict):
    """What happened in a range of milestones; ``end`` is the one behind the last, tokens are base tokens."""

    start: MilestoneIndex
    end: Count
    message_count: Count
    transaction_count: Count
    transferred_tokens: Count


class ActivityOfRanges(TypedDict):
    """Unbroken ranges of milestones with their activity."""

    ranges: list[RangeActivity]
    cursor: NotRequired[Cursor]


_PLACE = json_or_raw(Enveloped[MilestoneMessages] | StardustMilestone)


@router.get("/milestones/{index}", responses=_PLACE)
def milestone(
    request: Request, lake: PublishedLake, index: MilestonePart, query: Annotated[MilestoneQuery, Query()]
) -> Response:
    """Return a milestone and the ids of the messages that it references, in white-flag order."""
    if not re.fullmatch(r"[0-9]{1,10}", index):
        if protocol_of(lake) == "chrysalis":
            raise bad_request("index: not a milestone index")
        return milestone_payload(request, milestone_by_id(lake, hex_id(index, "milestoneId")))
    number = int(index)
    if number > MAX_INDEX:
        raise bad_request("index: not a milestone index")
    return _milestone(lake, ledger.milestone(lake, number), query)


@router.get("/addresses/ed25519/{hex}/outputs", responses=answer(Enveloped[AddressOutputs]))
def ed25519_outputs(lake: PublishedLake, value: Ed25519, query: Annotated[OwnedQuery, Query()]) -> Response:
    """List the outputs that an Ed25519 address owns or owned, as by bech32."""
    raw = bytes.fromhex(hex_id(value, "address"))
    return _outputs(lake, encode_address(lake.settings.network(lake.network).bech32_hrp, 0, raw), query)


@router.get("/addresses/{bech32}/outputs", responses=answer(Enveloped[AddressOutputs]))
def outputs(lake: PublishedLake, text: Bech32, query: Annotated[OwnedQuery, Query()]) -> Response:
    """List the outputs of any kind that an address owns or owned, spent ones too by default."""
    return _outputs(lake, text, query)


def _outputs(lake: RequestLake, text: str, query: OwnedQuery) -> Response:
    kind, value = bech32_address(text, lake.settings.network(lake.network))
    address = text.lower()
    filters = {"address": address, "spent": query.include_spent, "type": query.type}
    page = query.asked(lake, filters)
    last = ledger.ledger_index(lake)
    rows = unspent_or_all(
        lake, page, lambda part: _owned(lake, address, part, query, last), include_spent=query.include_spent
    )
    shown, cursor = page.cut(rows, lambda row: (row["milestone_index"], row["output_id"]))
    data = {
        "addressType": kind,
        "address": value.hex(),
        "maxResults": page.size,
        "count": len(shown),
        "outputIds": [row["output_id"] for row in shown],
        "ledgerIndex": last,
        **({"cursor": cursor} if cursor else {}),
    }
    return lake.current({"data": data})


@router.get("/sync", responses=answer(SyncState))
def sync(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return which ranges of milestones are published, and the gaps between them; ends are exclusive."""
    held = ledger.ranges(lake)
    completed = [{"start": first, "end": last + 1} for first, last in held]
    gaps = [
        {"start": earlier["end"], "end": following["start"]} for earlier, following in pairwise(completed)
    ]
    newest_first = {"completed": completed[::-1], "synced_but_unlogged": [], "gaps": gaps[::-1]}
    return lake.current(newest_first)


@router.get("/analytics", responses=answer(ActivityOfRanges))
def analytics(lake: PublishedLake, query: Annotated[RangesQuery, Query()]) -> Response:
    """Return the activity of published milestones from ``start`` to before ``end``, by unbroken ranges."""
    if query.start > query.end:
        raise bad_request("start: behind end")
    parts = [
        {"start": max(first, query.start), "end": min(last + 1, query.end)}
        for first, last in ledger.ranges(lake)
        if first < query.end and last >= query.start
    ]
    parts = parts if query.sort == "oldest" else parts[::-1]
    page = query.asked(lake, {"start": query.start, "end": query.end})
    if page.after:
        at = page.after[0]
        parts = [part for part in parts if (part["start"] < at if query.newest else part["start"] > at)]
    shown, rest = parts[:_RANGES], parts[_RANGES:]
    content: dict[str, Any] = {"ranges": [{**part, **_sums(lake, part)} for part in shown]}
    if rest:
        content["cursor"] = page.cursor((shown[-1]["start"], ""))
    return lake.current(content)


def _sums(lake: RequestLake, part: dict[str, int]) -> dict[str, int]:
    row = lake.rows(
        "SELECT CAST(coalesce(sum(message_count), 0) AS BIGINT) AS message_count, "
        "CAST(coalesce(sum(transaction_count), 0) AS BIGINT) AS transaction_count, "
        "coalesce(sum(transferred_tokens), 0) AS transferred_tokens FROM ms_analytics "
        "WHERE milestone_index >= $start AND milestone_index < $end",
        part,
        ms_analytics=Scan(),
    )[0]
    return {name: int(value) for name, value in row.items()}


def _milestone(lake: RequestLake, row: ledger.Row, query: MilestoneQuery) -> Response:
    index = row["milestone_index"]
    page = query.asked(lake, {"index": index})
    order, compare = ("DESC", "<") if query.newest else ("ASC", ">")
    behind = f"white_flag_index {compare} $at" if page.after else "true"
    rows = lake.rows(
        f"SELECT message_id, white_flag_index FROM messages WHERE milestone_index = $index AND {behind} "  # noqa: S608
        f"ORDER BY white_flag_index {order} LIMIT {page.size + 1}",
        {"index": index, **({"at": page.after[0]} if page.after else {})},
        messages=Scan(milestones=[index]),
    )
    shown, cursor = page.cut(rows, lambda row: (row["white_flag_index"], row["message_id"]))
    data = {
        "index": index,
        "messageId": row["message_id"],
        "timestamp": row["timestamp"],
        "milestoneId": milestone_id(row["payload"]),
        "count": len(shown),
        "messageIds": [row["message_id"] for row in shown],
        **({"cursor": cursor} if cursor else {}),
    }
    return lake.current({"data": data})


def _owned(lake: RequestLake, address: str, page: ListPage, query: OwnedQuery, last: int) -> list[ledger.Row]:
    """Return a page of outputs by owner over all kinds up to a milestone, and one more."""
    of_type = {} if query.type is None else {"output_type": query.type}
    columns = ("amount", *of_type)
    rows: list[ledger.Row] = []
    for table, owner in OWNERS.items():
        if not of_type or table == "legacy_outputs":
            question = ledger.LedgerList(
                table, owner, address, "output_id", query.newest, columns, of_type, last
            )
            rows += ledger.listed(lake, question, page)
    rows.sort(key=lambda row: (row["milestone_index"], row["output_id"]), reverse=query.newest)
    return rows[: page.size + 1]
