"""``/wormhole/edb``: the routes of Wormhole's former event database, by query or by a JSON body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from permalake.web.answers import answer
from permalake.web.head import HeadRoute
from permalake.web.json_body import read_json
from permalake.web.paging import LIMIT, items_of_page
from permalake.web.problems import bad_request, documented, not_found
from permalake.web.state import PublishedLake
from permalake.wormhole.rest import event_database as edb
from permalake.wormhole.rest import identifiers
from permalake.wormhole.rest.dependencies import BundledReference, read
from permalake.wormhole.rest.edb_answers import (
    AddressesTransferredTo,
    ByReceiver,
    Counts,
    DailyTotals,
    EdbMessage,
    EdbRow,
    MessageTotals,
    NotionalTransferred,
    NotionalTransferredFrom,
    NotionalTransferredTo,
    NotionalTvl,
    NotionalTvlCumulative,
)
from permalake.wormhole.rest.edb_messages import MESSAGE_TABLES, full_row, recent_messages, summary
from permalake.wormhole.rest.events import EventFilter, find, list_events, load
from permalake.wormhole.rest.locked_assets import locked, locked_daily

router = APIRouter(tags=["event database"], route_class=HeadRoute)
_MOST_DAYS = 3660
_Body = TypeVar("_Body", bound=BaseModel)


class EdbQuery(BaseModel):
    """Parameters of every figure, all as text there; a flag is set by any text."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, coerce_numbers_to_str=True)

    for_chain: str | None = Field(None, alias="forChain")
    for_address: str | None = Field(None, alias="forAddress")
    num_days: int | None = Field(None, ge=0, le=_MOST_DAYS, alias="numDays")
    last_24_hours: str = Field("", alias="last24Hours")
    daily: str = ""
    for_period: str = Field("", alias="forPeriod")
    group_by: str | None = Field(None, pattern="^(chain|address)?$", alias="groupBy")
    num_rows: int = Field(
        30,
        ge=1,
        alias="numRows",
        description=f"Messages of a group; those of all groups are within the limit, too. {LIMIT}",
    )
    counts: str = ""
    amounts: str = ""

    def request(self) -> edb.EdbRequest:
        """Return the parameters as they are used; a 400 for a chain or address that is none."""
        if self.for_address and not self.for_chain:
            raise bad_request("forAddress: give forChain beside it")
        return edb.EdbRequest(
            self.num_days,
            read(identifiers.chain_id, self.for_chain) if self.for_chain else None,
            read(identifiers.emitter_address, self.for_address) if self.for_address else None,
            bool(self.last_24_hours),
            bool(self.for_period),
            bool(self.daily),
            self.group_by or None,
        )


class _Transaction(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str


class _RowId(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    emitterChain: str  # noqa: N815
    emitterAddress: str  # noqa: N815
    sequence: str


def _refuse_flags(given: Any) -> None:
    """Refuse JSON's true and false, which would pass as numbers."""
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, bool):
            raise bad_request(f"{name}: neither text nor a number")


def parameters(kind: type[_Body]) -> Callable[[Request], Any]:
    """Return the dependency that reads ``kind`` from the query, or from the JSON body of a POST."""

    async def parse(request: Request) -> _Body:
        given: Any = dict(request.query_params)
        if request.method == "POST" and (body := await request.body()):
            given = read_json(body)
        _refuse_flags(given)
        try:
            return kind.model_validate(given)
        except ValidationError as error:
            fault = error.errors()[0]
            name = ".".join(str(part) for part in fault["loc"]) or "body"
            raise bad_request(f"{name}: {fault['msg']}") from None

    return parse


_Figures = Annotated[EdbQuery, Depends(parameters(EdbQuery))]


def _loose(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a JSON body: what is text there may come as a number."""

    def loosened(member: dict[str, Any]) -> dict[str, Any]:
        if "anyOf" in member:
            return member | {"anyOf": [loosened(each) for each in member["anyOf"]]}
        return member | {"type": ["string", "number"]} if member.get("type") == "string" else member

    return schema | {"properties": {name: loosened(member) for name, member in schema["properties"].items()}}


def _route(
    path: str, shown: Any, kind: type[BaseModel] = EdbQuery
) -> Callable[[Callable[..., Response]], Any]:
    """Register a handler for GET and POST: OpenAPI lists the parameters of ``kind``; it answers ``shown``."""
    schema = kind.model_json_schema(by_alias=True)
    listed = [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": member}
        for name, member in schema["properties"].items()
    ]
    body = {"content": {"application/json": {"schema": _loose(schema)}}}

    def register(handler: Callable[..., Response]) -> Callable[..., Response]:
        name = handler.__name__
        answers = {**documented(), **answer(shown)}
        router.add_api_route(
            path,
            handler,
            methods=["GET"],
            responses=answers,
            operation_id=f"edb_{name}",
            openapi_extra={"parameters": listed},
        )
        router.add_api_route(
            path,
            handler,
            methods=["POST"],
            responses=answers,
            operation_id=f"edb_{name}_post",
            openapi_extra={"requestBody": body},
        )
        return handler

    return register


@_route("/notionaltransferred", NotionalTransferred)
def notional_transferred(lake: PublishedLake, query: _Figures) -> Response:
    """Return values by sending chain, receiving chain and symbol."""
    request = query.request()
    windows = edb.windows(lake.rows, request, edb.transfers(lake.rows, request), edb.by_route)
    return lake.current(_windows(windows, request))


@_route("/notionaltransferredto", NotionalTransferredTo)
def notional_transferred_to(lake: PublishedLake, query: _Figures) -> Response:
    """Return values by receiving chain and symbol."""
    request = query.request()
    windows = edb.windows(lake.rows, request, edb.transfers(lake.rows, request), edb.by_target)
    return lake.current(_windows(windows, request))


def _windows(windows: edb.EdbWindows[edb.Figures], request: edb.EdbRequest) -> dict[str, object]:
    return {
        "Last24Hours": windows.last_day or {},
        "WithinPeriod": windows.period or {},
        "PeriodDurationDays": request.period_days,
        "Daily": windows.daily,
    }


@_route("/notionaltransferredfrom", NotionalTransferredFrom)
def notional_transferred_from(lake: PublishedLake, query: _Figures) -> Response:
    """Return values by sending chain, each day and over the period."""
    given = query.request()
    request = edb.EdbRequest(given.days, given.chain, given.address, period=True, daily=True)
    windows = edb.windows(lake.rows, request, edb.transfers(lake.rows, request), edb.by_source)
    return lake.current({"Daily": windows.daily, "Total": (windows.period or {}).get(edb.ALL, 0.0)})


@_route("/addressestransferredto", AddressesTransferredTo)
def addresses_transferred_to(lake: PublishedLake, query: _Figures) -> Response:
    """Return receivers by chain: how many, and what each got."""
    request = query.request()
    select = edb.receivers(lake.rows, request)
    amounts, counts = edb.EdbWindows[ByReceiver](), edb.EdbWindows[Counts]()
    if query.amounts:
        amounts = edb.windows(lake.rows, request, select, edb.amounts)
    if query.counts or not query.amounts:
        counts = edb.windows(lake.rows, request, select, edb.counts)
    return lake.current(
        {
            "Last24HoursAmounts": amounts.last_day or {},
            "Last24HoursCounts": counts.last_day or {},
            "WithinPeriodAmounts": amounts.period or {},
            "WithinPeriodCounts": counts.period or {},
            "PeriodDurationDays": request.period_days,
            "DailyAmounts": amounts.daily,
            "DailyCounts": counts.daily,
        }
    )


@_route("/notionaltvl", NotionalTvl)
def notional_tvl(lake: PublishedLake, reference: BundledReference, query: _Figures) -> Response:
    """Return what the bridges hold, by the tokens' chain and address."""
    return lake.current(locked(lake.rows, reference, change=bool(query.last_24_hours)))


@_route("/notionaltvlcumulative", NotionalTvlCumulative)
def notional_tvl_cumulative(lake: PublishedLake, reference: BundledReference, query: _Figures) -> Response:
    """Return what the bridges held at the end of each day; more than 30 days count as 30."""
    days = min(query.request().period_days, edb.DEFAULT_DAYS)
    return lake.current(locked_daily(lake.rows, reference, days))


@_route("/totals", MessageTotals)
def totals(lake: PublishedLake, query: _Figures) -> Response:
    """Return numbers of messages, by day."""
    return lake.current(edb.message_totals(lake.rows, query.request()))


@_route("/nfts", MessageTotals)
def nfts(lake: PublishedLake, query: _Figures) -> Response:
    """Return numbers of NFT transfers, by day."""
    return lake.current(edb.message_totals(lake.rows, query.request(), "nft_transfer_payload"))


@_route("/transactiontotals", DailyTotals)
def transaction_totals(lake: PublishedLake, query: _Figures) -> Response:
    """Return numbers of messages of each day."""
    return lake.current({"DailyTotals": edb.message_totals(lake.rows, query.request())["DailyTotals"]})


@_route("/recent", dict[str, list[EdbMessage]])
def recent(lake: PublishedLake, reference: BundledReference, query: _Figures) -> Response:
    """Return the newest messages, grouped by ``*``, chain or chain:address."""
    return lake.current(
        recent_messages(lake, query.request(), items_of_page(lake.settings.serve, query.num_rows), reference)
    )


@_route("/transaction", EdbMessage, _Transaction)
def transaction(
    lake: PublishedLake,
    reference: BundledReference,
    query: Annotated[_Transaction, Depends(parameters(_Transaction))],
) -> Response:
    """Return the newest message that a transaction emitted."""
    spellings = read(identifiers.transaction_spellings, query.id)
    keys = list_events(lake, EventFilter(transactions=spellings), 1)
    if not keys:
        raise not_found(f"transaction {query.id}")
    return lake.current(summary(load(lake, keys, MESSAGE_TABLES, prices=False)[0], reference))


@_route("/readrow", EdbRow, _RowId)
def read_row(
    lake: PublishedLake,
    reference: BundledReference,
    query: Annotated[_RowId, Depends(parameters(_RowId))],
) -> Response:
    """Return one message with all its payloads and details."""
    message = read(identifiers.message_id, query.emitterChain, query.emitterAddress, query.sequence)
    key = find(lake, message)
    if key is None:
        raise not_found(f"message {message.text}")
    return lake.current(full_row(load(lake, [key], MESSAGE_TABLES, prices=False)[0], reference))
