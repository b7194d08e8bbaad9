"""Messages in Chrysalis' dialect (TIP-13): in core API v1, and of either protocol in the permanode's API."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.codec.outputs import Protocol
from permalake.iota.codec.to_json import BLOCKS_JSON, block_json
from permalake.iota.rest import ledger
from permalake.iota.rest.chrysalis_answers import ChrysalisMessage, ConflictReason, LedgerState
from permalake.iota.rest.parameters import MessageId, NodePage, TransactionId
from permalake.iota.rest.stardust_answers import MilestoneIndex, StardustBlock
from permalake.web.answers import (
    Bytes32,
    Count,
    Cursor,
    Enveloped,
    HexText,
    PageSize,
    answer,
    json_or_raw,
    only,
)
from permalake.web.batches import BatchedAnswer, alone
from permalake.web.head import HeadRoute
from permalake.web.paging import ListPage, Nothing
from permalake.web.parameter_types import hex_id, tag_hex
from permalake.web.problems import documented
from permalake.web.responses import RAW_TYPES, immutable_bytes, immutable_json, wants_raw
from permalake.web.state import PublishedLake, RequestLake, at_once, lacks, promptly

router = APIRouter(tags=["messages"], responses=documented(), route_class=HeadRoute)


class ChildrenQuery(NodePage):
    """Query of a message's children."""

    expanded: bool = Field(
        False, description="Objects with state and milestone instead of ids (chronicle.rs)."
    )


class TagQuery(ChildrenQuery):
    """Query of the messages with an index or tag."""

    index: str = Field(
        description="The index or tag: 1 to 64 bytes as hex, or as text with ``utf8``.",
        examples=["484f524e4554205370616d6d6572"],
    )
    utf8: bool = Field(False, description="The index is text, not hex.")


class MessageMetadata(TypedDict):
    """How a message was referenced, and what the ledger made of it; null while no milestone references it."""

    messageId: Bytes32
    parentMessageIds: list[Bytes32]
    isSolid: bool
    referencedByMilestoneIndex: MilestoneIndex | None
    milestoneIndex: NotRequired[MilestoneIndex]
    ledgerInclusionState: LedgerState | None
    conflictReason: NotRequired[ConflictReason]


class ExpandedMessage(TypedDict):
    """A message with state and milestone."""

    id: Bytes32
    inclusionState: LedgerState
    milestoneIndex: MilestoneIndex


class MessageChildren(TypedDict):
    """A page of the messages that approve a message: ids, or objects where ``expanded`` is set."""

    maxResults: PageSize
    count: Count
    childrenMessageIds: list[Bytes32 | ExpandedMessage]
    messageId: Bytes32
    cursor: NotRequired[Cursor]


class MessagesOfIndex(TypedDict):
    """A page of the messages with an index or tag: ids, or objects where ``expanded`` is set."""

    maxResults: PageSize
    count: Count
    messageIds: list[Bytes32 | ExpandedMessage]
    index: HexText
    cursor: NotRequired[Cursor]


_MESSAGE = json_or_raw(Enveloped[ChrysalisMessage | StardustBlock])


def _message_of_id(lake: RequestLake, message_id: str) -> Response | BatchedAnswer:
    return _message(lake.request, lake, ledger.any_message(lake, hex_id(message_id, "messageId")))


@router.get("/messages/{messageId}", responses=_MESSAGE)
@at_once(_message_of_id)
async def message(lake: PublishedLake, message_id: MessageId, query: Nothing) -> Response:  # noqa: ARG001
    """Return a message, as JSON or as its bytes."""
    return await promptly(lake, lambda: alone(_message_of_id(lake, message_id)))


@router.get("/messages/{messageId}/metadata", responses=answer(Enveloped[MessageMetadata]))
async def metadata(lake: PublishedLake, message_id: MessageId, query: Nothing) -> Response:  # noqa: ARG001
    """Return how a message was referenced, and what the ledger made of it."""
    hex_message_id = hex_id(message_id, "messageId")
    return await promptly(lake, lambda: _metadata(lake, ledger.any_message(lake, hex_message_id)))


@router.get("/messages/{messageId}/raw", responses=only(RAW_TYPES[1]), response_class=Response)
async def raw(
    request: Request,
    lake: PublishedLake,
    message_id: MessageId,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the bytes of a message."""
    hex_message_id = hex_id(message_id, "messageId")
    return await promptly(lake, lambda: _raw(request, ledger.any_message(lake, hex_message_id)))


@router.get("/messages/{messageId}/children", responses=answer(Enveloped[MessageChildren]))
def children(
    lake: PublishedLake, message_id: MessageId, query: Annotated[ChildrenQuery, Query()]
) -> Response:
    """List the messages that approve a message; an unknown one has none."""
    return _children(lake, hex_id(message_id, "messageId"), query)


@router.get("/messages", responses=answer(Enveloped[MessagesOfIndex]))
def messages(lake: PublishedLake, query: Annotated[TagQuery, Query()]) -> Response:
    """List the messages with an index (Chrysalis) or tag (Stardust), at top level or inside a transaction."""
    tag = tag_hex(query.index, "index", utf8=query.utf8)
    page = query.asked(lake, {"tag": tag, "expanded": query.expanded})
    rows, cursor = _found(lake, "tags", ("tag", tag), page, query)
    return _list(lake, "messageIds", rows, page, index=tag, cursor=cursor)


@router.get("/transactions/{transactionId}/included-message", responses=_MESSAGE)
def included_message(
    request: Request,
    lake: PublishedLake,
    transaction_id: TransactionId,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the message with which a transaction was included."""
    return alone(_message(request, lake, _included(lake, transaction_id)))


@router.get(
    "/transactions/{transactionId}/included-message/metadata", responses=answer(Enveloped[MessageMetadata])
)
def included_metadata(lake: PublishedLake, transaction_id: TransactionId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the metadata of the message with which a transaction was included."""
    return _metadata(lake, _included(lake, transaction_id))


@router.get(
    "/transactions/{transactionId}/included-message/raw",
    responses=only(RAW_TYPES[1]),
    response_class=Response,
)
def included_raw(
    request: Request,
    lake: PublishedLake,
    transaction_id: TransactionId,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the bytes of the message with which a transaction was included."""
    return _raw(request, _included(lake, transaction_id))


@router.get(
    "/transactions/{transactionId}/included-message/children", responses=answer(Enveloped[MessageChildren])
)
def included_children(
    lake: PublishedLake, transaction_id: TransactionId, query: Annotated[ChildrenQuery, Query()]
) -> Response:
    """List the children of the message with which a transaction was included."""
    return _children(lake, _included(lake, transaction_id)["message_id"], query)


def protocol_of(lake: RequestLake) -> Protocol:
    """Return the protocol of the request's network."""
    return lake.settings.network(lake.network).protocol


def _included(lake: RequestLake, transaction_id: str) -> ledger.Row:
    return ledger.included_message(lake, hex_id(transaction_id, "transactionId"))


def _message(request: Request, lake: RequestLake, row: ledger.Row) -> Response | BatchedAnswer:
    if media_type := wants_raw(request):
        return immutable_bytes(request, row["message"], media_type)
    compute = BLOCKS_JSON[protocol_of(lake)]
    return BatchedAnswer(compute, row["message"], lambda content: immutable_json(request, {"data": content}))


def _raw(request: Request, row: ledger.Row) -> Response:
    return immutable_bytes(request, row["message"])


def _metadata(lake: RequestLake, row: ledger.Row) -> Response:
    protocol = protocol_of(lake)
    content = block_json(row["message"], protocol)
    payload = content.get("payload") or {}
    parents = content["parentMessageIds" if protocol == "chrysalis" else "parents"]
    is_milestone = payload.get("type") == (1 if protocol == "chrysalis" else 7)
    data = {
        "messageId": row["message_id"],
        "parentMessageIds": [parent.removeprefix("0x") for parent in parents],
        "isSolid": True,
        "referencedByMilestoneIndex": row["milestone_index"],
        **({"milestoneIndex": payload["index"]} if is_milestone else {}),
        "ledgerInclusionState": ledger.STATES[row["inclusion_state"]],
        **({"conflictReason": row["conflict_reason"]} if row["inclusion_state"] == 0 else {}),
    }
    return lake.current({"data": data})


def _children(lake: RequestLake, message_id: str, query: ChildrenQuery) -> Response:
    page = query.asked(lake, {"message": message_id, "expanded": query.expanded})
    rows, cursor = _found(lake, "parents", ("parent_id", message_id), page, query)
    return _list(lake, "childrenMessageIds", rows, page, messageId=message_id, cursor=cursor)


def _found(
    lake: RequestLake, table: str, lookup: tuple[str, str], page: ListPage, query: ChildrenQuery
) -> tuple[list[Any], str | None]:
    question = ledger.LedgerList(table, *lookup, "message_id", query.newest, ("inclusion_state",))
    shown, cursor = page.cut(ledger.listed(lake, question, page), question.place)
    if not shown and not page.after:
        lacks(lake)
    return [_expanded(row) if query.expanded else row["message_id"] for row in shown], cursor


def _expanded(row: ledger.Row) -> dict[str, Any]:
    return {
        "id": row["message_id"],
        "inclusionState": ledger.STATES[row["inclusion_state"]],
        "milestoneIndex": row["milestone_index"],
    }


def _list(lake: RequestLake, name: str, rows: list[Any], page: ListPage, **rest: str | None) -> Response:
    further = {key: value for key, value in rest.items() if value is not None}
    return lake.current({"data": {"maxResults": page.size, "count": len(rows), name: rows, **further}})
