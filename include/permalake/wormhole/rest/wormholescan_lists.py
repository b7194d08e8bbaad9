"""Wormholescan's routes of VAAs, operations, transactions and observations."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from permalake.web.answers import answer
from permalake.web.paging import LIMIT, NoQuery, Nothing, items_of_page
from permalake.web.parameter_types import IsoTime
from permalake.web.problems import bad_request, documented, not_found, not_served
from permalake.web.responses import immutable_json
from permalake.web.state import PublishedLake, RequestLake, at_once, lacks, promptly
from permalake.wormhole.rest import identifiers
from permalake.wormhole.rest.dependencies import BundledReference, Chain, Emitter, NamedMessage, read
from permalake.wormhole.rest.events import EventFilter, find, list_events, load, signed_vaa
from permalake.wormhole.rest.identifiers import MessageId
from permalake.wormhole.rest.operations import OPERATION_TABLES, operation, transaction
from permalake.wormhole.rest.rows import base64_text
from permalake.wormhole.rest.scorecards import message_counts
from permalake.wormhole.rest.vaa_documents import (
    PARSED_TABLES,
    VAA_TABLES,
    Tables,
    duplicates,
    vaa_document,
)
from permalake.wormhole.rest.wormholescan_answers import (
    ChainCount,
    EnqueuedState,
    Operation,
    Operations,
    SignedVaa,
    VaaDocument,
    WithPagination,
    WormholeTransaction,
    WormholeTransactions,
)
from permalake.wormhole.rest.wormholescan_errors import WormholescanRoute

router = APIRouter(tags=["wormholescan"], route_class=WormholescanRoute)
_VAAS = answer(WithPagination[list[VaaDocument]])
_DEEPEST = 100_000
"""Rows that a page may pass over; further ones are reached by narrower filters."""


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class NumberedPages(NoQuery):
    """``page``, ``pageSize`` and ``sortOrder`` of Wormholescan's lists."""

    page: int = Field(0, ge=0, le=_DEEPEST, description="Number of the page, from 0.")
    page_size: int = Field(50, ge=1, alias="pageSize", description=f"Items per page. {LIMIT}")
    sort_order: Annotated[Literal["ASC", "DESC"], BeforeValidator(_upper)] = Field("DESC", alias="sortOrder")

    most: ClassVar[int | None] = None
    """A limit of the list's own."""

    def place(self, lake: RequestLake) -> tuple[int, int]:
        """Return the items of the page, and those before it; a 400 where they are too many."""
        size = items_of_page(lake.settings.serve, self.page_size, self.most)
        if self.page * size > _DEEPEST:
            raise bad_request(f"page: at most {_DEEPEST} rows can be passed over; narrow the list instead")
        return size, self.page * size


class _VaaList(NumberedPages):
    tx_hash: str | None = Field(None, alias="txHash", description="Transaction id, with or without 0x.")
    parsed: bool = Field(False, alias="parsedPayload", description="Whether to decode the bridges' payloads.")
    to_chain: int | None = Field(None, ge=0, le=65535, alias="toChain")


class _OneVaa(NoQuery):
    parsed: bool = Field(False, alias="parsedPayload")


class _OperationList(NumberedPages):
    most: ClassVar[int | None] = 100
    page_size: int = Field(
        50, ge=1, alias="pageSize", description="Items per page; more than 100 count as 100."
    )
    address: str | None = Field(None, description="Native address of sender, receiver or recipient.")
    tx_hash: str | None = Field(
        None, alias="txHash", description="Transaction that emitted the message, or that redeemed it."
    )
    source_chain: int | None = Field(None, ge=0, le=65535, alias="sourceChain")
    target_chain: int | None = Field(None, ge=0, le=65535, alias="targetChain")
    app_id: str | None = Field(
        None, alias="appId", description="An application, also of messages that it carries."
    )
    is_alone: bool = Field(
        False, alias="exclusiveAppId", description="Whether to leave out messages that have another one, too."
    )
    since: IsoTime | None = Field(None, alias="from", description="First time, RFC 3339.")
    until: IsoTime | None = Field(None, alias="to", description="Last time, RFC 3339.")


class _TransactionList(NumberedPages):
    address: str | None = Field(None, description="Native address of sender, receiver or recipient.")


def tables_of(lake: RequestLake, message: MessageId, names: tuple[str, ...]) -> Tables:
    """Return a message's rows; a 404 where it is not published."""
    key = find(lake, message)
    if key is None:
        raise not_found(f"VAA {message.text}")
    return load(lake, [key], names, prices=False)[0]


def _list(
    lake: RequestLake, query: NumberedPages, event_filter: EventFilter, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    newest = query.sort_order == "DESC"
    size, skip = query.place(lake)
    keys = list_events(lake, event_filter, size, newest=newest, skip=skip)
    if event_filter.transactions and not keys:
        lacks(lake)
    return [dict(tables) for tables in load(lake, keys, names, prices=False)]


def _transactions(text: str | None) -> tuple[str, ...]:
    return () if text is None else read(identifiers.transaction_spellings, text)


def _addresses(text: str | None) -> tuple[str, ...]:
    return () if text is None else read(identifiers.address_spellings, text)


def _vaas(
    lake: RequestLake,
    reference: BundledReference,
    query: _VaaList,
    chain: str | None = None,
    emitter: str | None = None,
) -> Response:
    event_filter = EventFilter(
        chain=None if chain is None else read(identifiers.chain_id, chain),
        emitter=None if emitter is None else read(identifiers.emitter_address, emitter),
        target_chain=query.to_chain,
        transactions=_transactions(query.tx_hash),
    )
    listed = _list(lake, query, event_filter, PARSED_TABLES if query.parsed else VAA_TABLES)
    documents = [vaa_document(tables, reference, parsed=query.parsed) for tables in listed]
    return lake.current({"data": documents, "pagination": {"next": ""}})


@router.get("/api/v1/vaas", responses={**documented(), **_VAAS})
def vaas(lake: PublishedLake, reference: BundledReference, query: Annotated[_VaaList, Query()]) -> Response:
    """Return VAAs, newest first, or all those of a transaction."""
    return _vaas(lake, reference, query)


@router.get("/api/v1/vaas/vaa-counts", responses={**documented(), **answer(WithPagination[list[ChainCount]])})
def vaa_counts(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return the number of VAAs of each chain."""
    return lake.current({"data": message_counts(lake.rows), "pagination": {"next": ""}})


@router.get("/api/v1/vaas/{chain}", responses={**documented(), **_VAAS})
def vaas_of_chain(
    lake: PublishedLake, reference: BundledReference, chain: Chain, query: Annotated[_VaaList, Query()]
) -> Response:
    """Return the VAAs of a chain."""
    return _vaas(lake, reference, query, chain)


@router.get("/api/v1/vaas/{chain}/{emitter}", responses={**documented(), **_VAAS})
def vaas_of_emitter(
    lake: PublishedLake,
    reference: BundledReference,
    chain: Chain,
    emitter: Emitter,
    query: Annotated[_VaaList, Query()],
) -> Response:
    """Return the VAAs of an emitter."""
    return _vaas(lake, reference, query, chain, emitter)


@router.get(
    "/api/v1/vaas/{chain}/{emitter}/{sequence}",
    responses={**documented(), **answer(WithPagination[VaaDocument])},
)
def vaa(
    lake: PublishedLake,
    reference: BundledReference,
    message: NamedMessage,
    query: Annotated[_OneVaa, Query()],
) -> Response:
    """Return one VAA."""
    tables = tables_of(lake, message, PARSED_TABLES if query.parsed else VAA_TABLES)
    return lake.current(
        {"data": vaa_document(tables, reference, parsed=query.parsed), "pagination": {"next": ""}}
    )


@router.get("/api/v1/vaas/{chain}/{emitter}/{sequence}/duplicated", responses={**documented(), **_VAAS})
def duplicated(
    lake: PublishedLake,
    reference: BundledReference,
    message: NamedMessage,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the quarantined VAAs of one message that guardians signed with different bodies."""
    return lake.current({"data": duplicates(lake.rows, message, reference), "pagination": {"next": ""}})


def _signed_vaa(lake: RequestLake, message: MessageId) -> Response:
    raw = signed_vaa(lake, message)
    if raw is None:
        raise not_found(f"VAA {message.text}")
    return immutable_json(lake.request, {"vaaBytes": base64_text(raw)})


def _signed_vaa_of_id(lake: RequestLake, *parts: str) -> Response:
    return _signed_vaa(lake, read(identifiers.message_id, *parts))


@router.get("/v1/signed_vaa/{chain}/{emitter}/{sequence}", responses={**documented(), **answer(SignedVaa)})
@at_once(_signed_vaa_of_id)
async def one_signed_vaa(
    lake: PublishedLake,
    message: NamedMessage,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the bytes of a VAA, as a guardian does."""
    return await promptly(lake, lambda: _signed_vaa(lake, message))


@router.get(
    "/v1/governor/is_vaa_enqueued/{chain}/{emitter}/{sequence}",
    responses={**documented(501), **answer(EnqueuedState)},
)
def is_enqueued(
    lake: PublishedLake,
    message: NamedMessage,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Answer false for a VAA that is published; what the governor holds is not known here."""
    if find(lake, message) is None:
        lacks(lake)
        raise not_served(f"VAA {message.text} is not published; whether it is enqueued only guardians know")
    return lake.current({"isEnqueued": False})


@router.get("/api/v1/operations", responses={**documented(), **answer(Operations)})
def operations(
    lake: PublishedLake, reference: BundledReference, query: Annotated[_OperationList, Query()]
) -> Response:
    """Return operations by address, transaction, chains, application or time; newest first."""
    spellings = _transactions(query.tx_hash)
    event_filter = EventFilter(
        chain=query.source_chain,
        target_chain=query.target_chain,
        transactions=spellings,
        paid_by=spellings,
        addresses=_addresses(query.address),
        app_id=query.app_id,
        is_alone=query.is_alone,
        since=query.since,
        until=query.until,
    )
    listed = _list(lake, query, event_filter, OPERATION_TABLES)
    return lake.current({"operations": [operation(tables, reference) for tables in listed]})


@router.get(
    "/api/v1/operations/{chain}/{emitter}/{sequence}", responses={**documented(), **answer(Operation)}
)
def one_operation(
    lake: PublishedLake,
    reference: BundledReference,
    message: NamedMessage,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return one operation."""
    return lake.current(operation(tables_of(lake, message, OPERATION_TABLES), reference))


@router.get("/api/v1/transactions", responses={**documented(), **answer(WormholeTransactions)})
def transactions(
    lake: PublishedLake, reference: BundledReference, query: Annotated[_TransactionList, Query()]
) -> Response:
    """Return the messages of an address, newest first."""
    listed = _list(lake, query, EventFilter(addresses=_addresses(query.address)), OPERATION_TABLES)
    return lake.current({"transactions": [transaction(tables, reference) for tables in listed]})


@router.get(
    "/api/v1/transactions/{chain}/{emitter}/{sequence}",
    responses={**documented(), **answer(WormholeTransaction)},
)
def one_transaction(
    lake: PublishedLake,
    reference: BundledReference,
    message: NamedMessage,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return one message as a transaction."""
    return lake.current(transaction(tables_of(lake, message, OPERATION_TABLES), reference))
