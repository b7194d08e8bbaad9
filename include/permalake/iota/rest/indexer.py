"""Routes of the indexer (TIP-26, inx-indexer 1.0), under its own names and those of seed 004."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.rest import core_v1, core_v2, ledger
from permalake.iota.rest.chain_states import CHAINS
from permalake.iota.rest.core_v2_answers import OutputWithMetadata
from permalake.iota.rest.index_filters import Kind, OutputFilter, filter_of
from permalake.iota.rest.index_pages import Listing, day_of, page_items, positions
from permalake.iota.rest.index_queries import (
    AliasQuery,
    BasicQuery,
    ChainQuery,
    CommonQuery,
    CreatedQuery,
    FoundryQuery,
    LegacyQuery,
    NftQuery,
)
from permalake.iota.rest.parameters import bech32_address
from permalake.iota.rest.stardust_answers import MilestoneIndex
from permalake.web.answers import Cursor, Enveloped, PageSize, answer, json_or_raw
from permalake.web.paging import Text, Unsigned
from permalake.web.parameter_types import hex_id, hex_schema
from permalake.web.problems import ProblemError, documented, not_found
from permalake.web.state import PublishedLake, RequestLake

stardust = APIRouter(tags=["indexer"], responses=documented())
chrysalis = APIRouter(tags=["indexer"], responses=documented())
_ALIAS, _NFT, _FOUNDRY = f"0x{'0' * 63}1", f"0x{'0' * 63}2", f"0x08{'0' * 63}10100000000"
AliasId = Annotated[
    str, Path(description="Alias id, 32 bytes in hex.", examples=[_ALIAS], json_schema_extra=hex_schema(32))
]
NftId = Annotated[
    str, Path(description="NFT id, 32 bytes in hex.", examples=[_NFT], json_schema_extra=hex_schema(32))
]
FoundryId = Annotated[
    str,
    Path(description="Foundry id, 38 bytes in hex.", examples=[_FOUNDRY], json_schema_extra=hex_schema(38)),
]
_PREFIX = {"stardust": "0x", "chrysalis": ""}


class OutputIds(TypedDict):
    """A page of ids of outputs; bare hex on Chrysalis."""

    ledgerIndex: MilestoneIndex
    pageSize: PageSize
    items: list[Annotated[str, Field(pattern="^(0x)?[0-9a-f]{68}$")]]
    cursor: NotRequired[Cursor]


@stardust.get("/outputs", responses=answer(OutputIds))
def outputs(lake: PublishedLake, query: Annotated[BasicQuery, Query()]) -> Response:
    """Return the ids of outputs of all kinds; with a filter of basic outputs, of these alone (seed 004)."""
    common = set(CommonQuery.model_fields)
    asked = set(query.model_dump(exclude_none=True))
    kinds: tuple[Kind, ...] = ("basic", "alias", "nft", "foundry")
    if asked - common:
        kinds = ("basic",)
    shared = query if len(kinds) == 1 else CommonQuery.model_construct(**query.model_dump(include=common))
    return _listed(lake, query, *((kind, shared) for kind in kinds))


@stardust.get("/outputs/basic", responses=answer(OutputIds))
def basic_outputs(lake: PublishedLake, query: Annotated[BasicQuery, Query()]) -> Response:
    """Return the ids of basic outputs."""
    return _listed(lake, query, ("basic", query))


@stardust.get("/outputs/alias", responses=answer(OutputIds))
@stardust.get("/aliases", responses=answer(OutputIds))
def alias_outputs(lake: PublishedLake, query: Annotated[AliasQuery, Query()]) -> Response:
    """Return the ids of alias outputs."""
    return _listed(lake, query, ("alias", query))


@stardust.get("/outputs/nft", responses=answer(OutputIds))
@stardust.get("/nft", responses=answer(OutputIds))
def nft_outputs(lake: PublishedLake, query: Annotated[NftQuery, Query()]) -> Response:
    """Return the ids of NFT outputs."""
    return _listed(lake, query, ("nft", query))


@stardust.get("/outputs/foundry", responses=answer(OutputIds))
@stardust.get("/foundries", responses=answer(OutputIds))
def foundry_outputs(lake: PublishedLake, query: Annotated[FoundryQuery, Query()]) -> Response:
    """Return the ids of foundry outputs."""
    return _listed(lake, query, ("foundry", query))


@stardust.get("/outputs/alias/{aliasId}", responses=answer(OutputIds))
@stardust.get("/aliases/{aliasId}", responses=answer(OutputIds))
def alias(
    lake: PublishedLake,
    aliasId: AliasId,  # noqa: N803
    query: Annotated[ChainQuery, Query()],
) -> Response:
    """Return the id of an alias's newest output; with state=all also if it is spent."""
    return _newest(lake, "alias", aliasId, query)


@stardust.get("/outputs/nft/{nftId}", responses=answer(OutputIds))
@stardust.get("/nft/{nftId}", responses=answer(OutputIds))
def nft(
    lake: PublishedLake,
    nftId: NftId,  # noqa: N803
    query: Annotated[ChainQuery, Query()],
) -> Response:
    """Return the id of an NFT's newest output; with state=all also if it is spent."""
    return _newest(lake, "nft", nftId, query)


@stardust.get("/outputs/foundry/{foundryId}", responses=answer(OutputIds))
@stardust.get("/foundries/{foundryId}", responses=answer(OutputIds))
def foundry(
    lake: PublishedLake,
    foundryId: FoundryId,  # noqa: N803
    query: Annotated[ChainQuery, Query()],
) -> Response:
    """Return the id of a foundry's newest output; with state=all also if it is spent."""
    return _newest(lake, "foundry", foundryId, query)


@chrysalis.get("/outputs", responses=answer(OutputIds))
def legacy_outputs(lake: PublishedLake, query: Annotated[LegacyQuery, Query()]) -> Response:
    """Return the ids of Chrysalis outputs, by owner."""
    return _listed(lake, query, ("legacy", query))


# Seed 004 finds single outputs here too.
stardust.add_api_route("/outputs/{outputId}", core_v2.output, responses=json_or_raw(OutputWithMetadata))
chrysalis.add_api_route(
    "/outputs/{outputId}", core_v1.output, responses=answer(Enveloped[core_v1.ChrysalisOutputState])
)


def _listed(lake: RequestLake, query: CreatedQuery, *kinds: tuple[Kind, CreatedQuery]) -> Response:
    network = lake.settings.network(lake.network)

    def as_address(text: str) -> str:
        bech32_address(text, network)
        return text.lower()

    filters = tuple(filter_of(kind, kind_query, as_address) for kind, kind_query in kinds)
    page = lake.page(query, query.filters(), positions=(Unsigned, Text))
    last = ledger.ledger_index(lake)
    listing = Listing(
        filters,
        last,
        query.spent_too,
        query.sort == "newest",
        page.after,
        page.size + 1,
        (_day(query.created_after), _day(query.created_before)),
    )
    places = positions(lake, listing)
    shown, cursor = page.cut(places, lambda position: position)
    return lake.current(_page(last, page.size, page_items(shown, _PREFIX[network.protocol]), cursor))


def _day(time: int | None) -> Any:
    return None if time is None else day_of(time)


def _page(ledger_index: int, size: int, items: list[str], cursor: str | None) -> dict[str, Any]:
    body = {"ledgerIndex": ledger_index, "pageSize": size, "items": items}
    return body | ({"cursor": cursor} if cursor else {})


def _newest(lake: RequestLake, kind: Kind, text: str, query: ChainQuery) -> Response:
    column, size = CHAINS[kind]
    chain_id = hex_id(text, f"{kind}Id", size)
    last, table = ledger.ledger_index(lake), OutputFilter(kind).table
    states = lake.rows(
        f"SELECT output_id FROM {table} WHERE {column} = $id AND milestone_index <= $last",  # noqa: S608
        {"id": chain_id, "last": last},
        **{table: lake.find(table, column, chain_id)},
    )
    ids = [row["output_id"] for row in states]
    spent = ledger.spent(lake, ids)
    # A state is the newest one if the transaction that consumed it created none.
    created = {output_id[:64] for output_id in ids}
    newest = next(
        (
            output_id
            for output_id in ids
            if output_id not in spent or spent[output_id]["transaction_id"] not in created
        ),
        None,
    )
    if newest is None:
        raise not_found(f"{kind} {chain_id}")
    if newest in spent and not query.spent_too:
        end = spent[newest]
        raise ProblemError(
            404,
            f"{kind} {chain_id} was destroyed in milestone {end['milestone_index']}, by transaction "
            f"{end['transaction_id']}; with state=all its last output is given",
        )
    return lake.current(_page(last, 1, [f"0x{newest}"], None))
