"""Routes of Chronicle's explorer API v2: balances, children, milestones and their blocks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.rest import ledger
from permalake.iota.rest.balances import balance_of
from permalake.iota.rest.content_words import payload_type
from permalake.iota.rest.core_v2 import milestone_by_id
from permalake.iota.rest.holdings import holdings, since
from permalake.iota.rest.index_pages import day_of
from permalake.iota.rest.parameters import (
    MAX_INDEX,
    BlockId,
    Index,
    MilestoneId,
    StardustAddress,
    bech32_address,
)
from permalake.iota.rest.stardust_answers import Id32, MilestoneIndex
from permalake.lake.serving import Scan
from permalake.web.answers import Count, Cursor, PageSize, TokenText, answer
from permalake.web.paging import LIMIT, NoQuery, Nothing, PageQuery, Unsigned, items_of_page
from permalake.web.parameter_types import hex_id
from permalake.web.problems import documented, not_found
from permalake.web.state import PublishedLake, RequestLake

router = APIRouter(tags=["explorer"], responses=documented())


class ChildPageQuery(NoQuery):
    """A page by its number."""

    page_size: int | None = Field(None, ge=1, alias="pageSize", description=f"Items per page. {LIMIT}")
    page: int = Field(0, ge=0, le=MAX_INDEX, description="Number of the page, from 0.")


class MilestonesQuery(PageQuery):
    """Milestones of a time, both bounds inclusive."""

    start: int | None = Field(
        None, ge=0, le=MAX_INDEX, alias="startTimestamp", description="First time (unix seconds)."
    )
    end: int | None = Field(
        None, ge=0, le=MAX_INDEX, alias="endTimestamp", description="Last time (unix seconds)."
    )


class ExplorerBalance(TypedDict):
    """What an address owns: at least that much, since a milestone; ``spentFromBefore`` it held before."""

    totalBalance: TokenText
    availableBalance: TokenText
    ownedAmount: TokenText
    spentFromBefore: TokenText
    sinceMilestone: MilestoneIndex
    ledgerIndex: MilestoneIndex


class BlockChildren(TypedDict):
    """A page of the blocks that have a block as a parent."""

    blockId: Id32
    maxResults: PageSize
    count: Count
    children: list[Id32]


class MilestonePlace(TypedDict):
    """A milestone by id and index."""

    milestoneId: Id32
    index: MilestoneIndex


class MilestonePlaces(TypedDict):
    """A page of milestones."""

    items: list[MilestonePlace]
    cursor: NotRequired[Cursor]


class ReferencedBlock(TypedDict):
    """A block with the type of its payload, if it has one."""

    blockId: Id32
    payloadType: NotRequired[Count]


class ReferencedBlocks(TypedDict):
    """A page of the blocks that a milestone references."""

    blocks: list[ReferencedBlock]
    cursor: NotRequired[Cursor]


@router.get("/balance/{address}", responses=answer(ExplorerBalance))
def balance(lake: PublishedLake, address: StardustAddress, query: Nothing) -> Response:  # noqa: ARG001
    """Return what an address owns, in all and without running timelocks.

    ``ownedAmount``: unspent outputs created for it, as in the SQL view ``account_statement``. All are at
    least that much, since ``sinceMilestone``; ``spentFromBefore`` it held before.
    """
    bech32_address(address, lake.settings.network(lake.network))
    account = balance_of(lake, address.lower())
    if account is None:
        raise not_found(address.lower())
    total, available = account
    held = holdings(lake, address.lower())
    return lake.current(
        {
            "totalBalance": str(total),
            "availableBalance": str(available),
            "ownedAmount": str(held.amount),
            "spentFromBefore": str(held.opening),
            "sinceMilestone": since(lake),
            "ledgerIndex": ledger.ledger_index(lake),
        }
    )


@router.get("/blocks/{blockId}/children", responses=answer(BlockChildren))
def children(lake: PublishedLake, block_id: BlockId, query: Annotated[ChildPageQuery, Query()]) -> Response:
    """Return the blocks that have a block as a parent, the earliest referenced first, at any distance."""
    parent = hex_id(block_id, "blockId")
    size = items_of_page(lake.settings.serve, query.page_size)
    rows = lake.rows(
        "SELECT message_id FROM parents WHERE parent_id = $id ORDER BY milestone_index, message_id "
        "LIMIT $size OFFSET $skipped",
        {"id": parent, "size": size, "skipped": size * query.page},
        parents=lake.find("parents", "parent_id", parent),
    )
    if not rows and query.page == 0:
        ledger.message(lake, parent)
    blocks = [f"0x{row['message_id']}" for row in rows]
    return lake.current(
        {"blockId": f"0x{parent}", "maxResults": size, "count": len(blocks), "children": blocks}
    )


@router.get("/milestones", responses=answer(MilestonePlaces))
def milestones(lake: PublishedLake, query: Annotated[MilestonesQuery, Query()]) -> Response:
    """Return the milestones of a time."""
    page = lake.page(query, {"start": query.start, "end": query.end}, positions=(Unsigned,))
    condition, bound = _behind("milestone_index", query.sort, page.after)
    if query.start is not None:
        condition, bound = f"{condition} AND timestamp >= $start", bound | {"start": query.start}
    if query.end is not None:
        condition, bound = f"{condition} AND timestamp <= $end", bound | {"end": query.end}
    rows = lake.rows(
        "SELECT milestone_index, milestone_id FROM milestones "  # noqa: S608
        f"WHERE milestone_index <= $last AND {condition} "
        f"ORDER BY milestone_index {_way(query.sort)} LIMIT $size",
        {**bound, "last": ledger.ledger_index(lake), "size": page.size + 1},
        milestones=Scan(
            first=None if query.start is None else day_of(query.start),
            last=None if query.end is None else day_of(query.end),
        ),
    )
    shown, cursor = page.cut(rows, lambda row: (row["milestone_index"],))
    items = [{"milestoneId": f"0x{row['milestone_id']}", "index": row["milestone_index"]} for row in shown]
    return lake.current({"items": items, **_next(cursor)})


@router.get("/milestones/by-index/{index}/blocks", responses=answer(ReferencedBlocks))
def blocks_by_index(lake: PublishedLake, index: Index, query: Annotated[PageQuery, Query()]) -> Response:
    """Return the blocks that a milestone references, in white-flag order or backwards."""
    return _blocks(lake, ledger.milestone(lake, index)["milestone_index"], query)


@router.get("/milestones/{milestoneId}/blocks", responses=answer(ReferencedBlocks))
def blocks_by_id(
    lake: PublishedLake, milestone: MilestoneId, query: Annotated[PageQuery, Query()]
) -> Response:
    """Return the blocks that a milestone references, in white-flag order or backwards."""
    row = milestone_by_id(lake, hex_id(milestone, "milestoneId"))
    return _blocks(lake, row["milestone_index"], query)


def _blocks(lake: RequestLake, index: int, query: PageQuery) -> Response:
    page = lake.page(query, {"index": index}, positions=(Unsigned,))
    condition, bound = _behind("white_flag_index", query.sort, page.after)
    rows = lake.rows(
        "SELECT message_id, message, white_flag_index FROM messages "  # noqa: S608
        f"WHERE milestone_index = $index AND {condition} "
        f"ORDER BY white_flag_index {_way(query.sort)} LIMIT $size",
        {**bound, "index": index, "size": page.size + 1},
        messages=Scan(milestones=[index]),
    )
    shown, cursor = page.cut(rows, lambda row: (row["white_flag_index"],))
    items = [{"blockId": f"0x{row['message_id']}", **_payload_type(row["message"])} for row in shown]
    return lake.current({"blocks": items, **_next(cursor)})


def _payload_type(block: bytes) -> dict[str, int]:
    code = payload_type(block, "stardust")
    return {} if code is None else {"payloadType": code}


def _behind(
    column: str, sort: Literal["newest", "oldest"], after: tuple[Any, ...] | None
) -> tuple[str, dict[str, Any]]:
    """Return the condition that a row lies behind a number, with what it binds."""
    if after is None:
        return "true", {}
    return f"{column} {'<' if sort == 'newest' else '>'} $after", {"after": after[0]}


def _way(sort: str) -> str:
    return "DESC" if sort == "newest" else "ASC"


def _next(cursor: str | None) -> dict[str, str]:
    return {"cursor": cursor} if cursor else {}
