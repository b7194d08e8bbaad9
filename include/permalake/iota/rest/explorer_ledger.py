"""Routes of Chronicle's explorer API v2 over the ledger: its updates, and who holds it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.rest import ledger
from permalake.iota.rest.core_v2 import milestone_by_id
from permalake.iota.rest.holdings import OWNERS, since
from permalake.iota.rest.paged_rows import paged_rows
from permalake.iota.rest.parameters import MAX_INDEX, MilestoneId, StardustAddress, bech32_address
from permalake.iota.rest.stardust_answers import MilestoneIndex, OutputId34
from permalake.lake.serving import EVERYTHING, Scan
from permalake.web.answers import Count, Cursor, Seconds, TokenText, answer
from permalake.web.paging import LIMIT, ListPage, NoQuery, PageQuery, Text, Unsigned, items_of_page
from permalake.web.parameter_types import hex_id
from permalake.web.problems import bad_request, documented, not_found
from permalake.web.state import PublishedLake, RequestLake

router = APIRouter(tags=["explorer"], responses=documented())
_TABLES = (*OWNERS, "consumed_outputs")
_POSITION = (Unsigned, Text, Unsigned)
_UPDATES = " UNION ALL ".join(
    (
        *(
            f"SELECT {owner} AS address, output_id, 0 AS is_spent, milestone_index, ms_timestamp "  # noqa: S608
            f"FROM {table}"
            for table, owner in OWNERS.items()
        ),
        "SELECT address, output_id, 1, milestone_index, ms_timestamp FROM consumed_outputs "
        "WHERE kind <> 'treasury'",
    )
)


class UpdatesQuery(PageQuery):
    """Updates from a milestone on, in the list's direction."""

    start: int | None = Field(
        None, ge=0, le=MAX_INDEX, alias="startMilestoneIndex", description="Milestone at which to begin."
    )


class CursorQuery(NoQuery):
    """A page of a list with one order."""

    page_size: int | None = Field(None, ge=1, alias="pageSize", description=f"Items per page. {LIMIT}")
    cursor: str | None = Field(None, max_length=2048, description="The cursor of the page before.")


class LedgerQuery(NoQuery):
    """The ledger after a milestone; Chronicle's code spells the parameter in snake case."""

    index: int | None = Field(
        None, ge=0, le=MAX_INDEX, alias="ledgerIndex", description="The newest unless given."
    )
    other_index: int | None = Field(
        None, ge=0, le=MAX_INDEX, alias="ledger_index", description="As ledgerIndex."
    )

    def last_milestone(self) -> int:
        """Return the milestone up to which days count."""
        given = {index for index in (self.index, self.other_index) if index is not None}
        if len(given) > 1:
            raise bad_request("ledgerIndex and ledger_index contradict each other; give one of them")
        return given.pop() if given else MAX_INDEX


class RichestQuery(LedgerQuery):
    """How many of the richest addresses."""

    top: int = Field(100, ge=1, description=f"Number of addresses. {LIMIT}")


class AddressUpdate(TypedDict):
    """An output that an address received or spent."""

    milestoneIndex: MilestoneIndex
    milestoneTimestamp: Seconds
    outputId: OutputId34
    isSpent: bool


class AddressUpdates(TypedDict):
    """A page of what an address received and spent."""

    address: str
    sinceMilestone: MilestoneIndex
    items: list[AddressUpdate]
    cursor: NotRequired[Cursor]


class MilestoneUpdate(TypedDict):
    """An output that a milestone created or consumed; without an owner in bech32: null."""

    address: str | None
    outputId: OutputId34
    isSpent: bool


class MilestoneUpdates(TypedDict):
    """A page of what a milestone created and consumed."""

    milestoneIndex: MilestoneIndex
    items: list[MilestoneUpdate]
    cursor: NotRequired[Cursor]


class RichAddress(TypedDict):
    """An address with its balance."""

    address: str
    balance: TokenText


class RichestAddresses(TypedDict):
    """The largest balances at a day's end; at least that much, unless ``sinceMilestone`` is null."""

    top: list[RichAddress]
    ledgerIndex: MilestoneIndex
    sinceMilestone: MilestoneIndex | None


class BalanceRange(TypedDict):
    """Balances from ``start`` to before ``end``, in base tokens."""

    start: Count
    end: Count


class DistributionPart(TypedDict):
    """Addresses with a balance in a range: how many, and what they hold together."""

    range: BalanceRange
    addressCount: Annotated[str, Field(pattern="^[0-9]+$", description="Number of addresses.")]
    totalBalance: TokenText


class BalanceDistribution(TypedDict):
    """Addresses by the power of ten of their balances, at a day's end; null: the whole ledger is known."""

    distribution: list[DistributionPart]
    ledgerIndex: MilestoneIndex
    sinceMilestone: MilestoneIndex | None


@router.get("/ledger/updates/by-address/{address}", responses=answer(AddressUpdates))
def updates_by_address(
    lake: PublishedLake,
    address: StardustAddress,
    query: Annotated[UpdatesQuery, Query()],
) -> Response:
    """Return the outputs that an address received and spent, by milestone and output."""
    bech32_address(address, lake.settings.network(lake.network))
    owner, newest = address.lower(), query.sort == "newest"
    page = lake.page(query, {"address": owner, "start": query.start}, positions=_POSITION)
    last = ledger.ledger_index(lake)
    places = {index for table in _TABLES for index in _places(lake, table, owner) if index <= last}
    if (begin := query.start) is not None:
        places = {index for index in places if (index <= begin if newest else index >= begin)}
    rows = _updates(lake, places, owner, page, newest=newest)
    shown, cursor = page.cut(rows, _position)
    items = [
        {
            "milestoneIndex": row["milestone_index"],
            "milestoneTimestamp": int(row["ms_timestamp"].timestamp()),
            "outputId": f"0x{row['output_id']}",
            "isSpent": bool(row["is_spent"]),
        }
        for row in shown
    ]
    body = {"address": owner, "sinceMilestone": since(lake), "items": items}
    return lake.current(body | ({"cursor": cursor} if cursor else {}))


@router.get("/ledger/updates/by-milestone/{milestoneId}", responses=answer(MilestoneUpdates))
def updates_by_milestone(
    lake: PublishedLake, milestone: MilestoneId, query: Annotated[CursorQuery, Query()]
) -> Response:
    """Return the outputs that a milestone created and consumed, by output."""
    index = milestone_by_id(lake, hex_id(milestone, "milestoneId"))["milestone_index"]
    asked = PageQuery(pageSize=query.page_size, cursor=query.cursor, sort="oldest")
    page = lake.page(asked, {"index": index}, positions=_POSITION)
    rows = _updates(lake, [index], None, page, newest=False)
    shown, cursor = page.cut(rows, _position)
    items = [
        {"address": row["address"], "outputId": f"0x{row['output_id']}", "isSpent": bool(row["is_spent"])}
        for row in shown
    ]
    body = {"milestoneIndex": index, "items": items}
    return lake.current(body | ({"cursor": cursor} if cursor else {}))


@router.get("/ledger/richest-addresses", responses=answer(RichestAddresses))
def richest_addresses(lake: PublishedLake, query: Annotated[RichestQuery, Query()]) -> Response:
    """Return the addresses with the largest balances at the end of a day, as many as the lake keeps."""
    day, index, known_from = _day_with(lake, "richest_addresses", query.last_milestone())
    rows = lake.rows(
        "SELECT address, balance FROM richest_addresses WHERE date = $day AND balance > 0 "
        "ORDER BY rank LIMIT $top",
        {"day": day, "top": items_of_page(lake.settings.serve, query.top)},
        richest_addresses=Scan(first=day, last=day),
    )
    top = [{"address": row["address"], "balance": str(row["balance"])} for row in rows]
    return lake.current({"top": top, "ledgerIndex": index, "sinceMilestone": known_from})


@router.get("/ledger/token-distribution", responses=answer(BalanceDistribution))
def token_distribution(lake: PublishedLake, query: Annotated[LedgerQuery, Query()]) -> Response:
    """Return how many addresses hold balances of each power of ten at the end of a day."""
    day, index, known_from = _day_with(lake, "token_distribution", query.last_milestone())
    rows = lake.rows(
        "SELECT bucket, addresses, amount FROM token_distribution WHERE date = $day ORDER BY bucket",
        {"day": day},
        token_distribution=Scan(first=day, last=day),
    )
    distribution = [
        {
            "range": {"start": 10 ** row["bucket"], "end": 10 ** (row["bucket"] + 1)},
            "addressCount": str(row["addresses"]),
            "totalBalance": str(row["amount"]),
        }
        for row in rows
    ]
    return lake.current({"distribution": distribution, "ledgerIndex": index, "sinceMilestone": known_from})


def _places(lake: RequestLake, table: str, owner: str) -> Iterable[int]:
    return lake.find(table, OWNERS.get(table, "address"), owner).milestones or ()


def _position(row: ledger.Row) -> tuple[int, str, int]:
    return row["milestone_index"], row["output_id"], row["is_spent"]


def _updates(
    lake: RequestLake, places: Iterable[int], owner: str | None, page: ListPage, *, newest: bool
) -> list[ledger.Row]:
    """Return one page, and one row more if there is one, of the updates at milestones."""
    sql, bound = _UPDATES, dict[str, Any]()
    if owner is not None:
        sql, bound = f"SELECT * FROM ({_UPDATES}) WHERE address = $owner", {"owner": owner}  # noqa: S608
    ties = ("output_id", "is_spent")
    return paged_rows(lake, page, places, sql, bound, tables=_TABLES, ties=ties, newest=newest)


def _day_with(lake: RequestLake, table: str, last: int) -> tuple[date, int, int | None]:
    """Return the last day of a table that ends at or before a milestone, and that day's last milestone.

    With them the milestone from which on its figures count, so that each is at least that much; None where
    the whole ledger is known. 404 if there is no such day.
    """
    days_of_table = set(lake.snapshot.days(lake.network, table))
    days = lake.rows(
        "SELECT date, end_ms FROM date_cache WHERE end_ms <= $wanted ORDER BY date DESC",
        {"wanted": min(last, ledger.ledger_index(lake))},
        date_cache=EVERYTHING,
    )
    match = next((row for row in days if row["date"] in days_of_table), None)
    if match is None:
        raise not_found(f"a day that ends at or before milestone {last} and tells of all balances")
    day: date = match["date"]
    [cut] = lake.rows(
        f"SELECT max(since_milestone) AS since FROM {table} WHERE date = $day",  # noqa: S608
        {"day": day},
        **{table: Scan(first=day, last=day)},
    )
    return day, match["end_ms"], cut["since"]
