"""Wormholescan's routes of figures, observations, tokens and guardians."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from permalake.web.answers import answer
from permalake.web.paging import NoQuery, Nothing
from permalake.web.problems import bad_request, documented, not_found
from permalake.web.state import PublishedLake, RequestLake
from permalake.wormhole.rest import identifiers, scorecards
from permalake.wormhole.rest.dependencies import BundledReference, Chain, Emitter, NamedMessage, read
from permalake.wormhole.rest.events import EventFilter, list_events, load
from permalake.wormhole.rest.vaa_documents import VAA_TABLES, observations
from permalake.wormhole.rest.wormholescan_answers import (
    ChainActivity,
    ChainPairs,
    CurrentGuardianSet,
    MessagesOfTime,
    Observation,
    Scorecards,
    TokenFacts,
    TopAssets,
)
from permalake.wormhole.rest.wormholescan_errors import WormholescanRoute
from permalake.wormhole.rest.wormholescan_lists import NumberedPages, tables_of

router = APIRouter(tags=["wormholescan"], route_class=WormholescanRoute)
_OBSERVED = (*VAA_TABLES, "observations")
_TOKEN = "0000000000000000000000002260fac5e5542a773aa44fbcfedf7c193bc2c599"  # noqa: S105
_GUARDIAN = "58cc3ae5c097b213ce3c81979e1b9f9570746aa5"
_HASH = "0" * 64


class _LastTransactions(NoQuery):
    time_span: Literal["1d", "1w", "1mo"] = Field("1d", alias="timeSpan")
    sample_rate: Literal["1h", "1d"] = Field("1h", alias="sampleRate")


class _Activity(NoQuery):
    time_span: Literal["7d", "30d", "90d", "1y", "all-time"] = Field("7d", alias="timeSpan")
    by: Literal["notional", "tx"] = "notional"


class _Top(NoQuery):
    time_span: Literal["7d", "15d", "30d"] = Field(alias="timeSpan")


@router.get("/api/v1/observations", responses={**documented(), **answer(list[Observation])})
def all_observations(
    lake: PublishedLake, reference: BundledReference, query: Annotated[NumberedPages, Query()]
) -> Response:
    """Return the signatures of the newest messages; a page counts messages."""
    return _observations(lake, reference, query, EventFilter())


@router.get("/api/v1/observations/{chain}", responses={**documented(), **answer(list[Observation])})
def observations_of_chain(
    lake: PublishedLake, reference: BundledReference, chain: Chain, query: Annotated[NumberedPages, Query()]
) -> Response:
    """Return the signatures of a chain's messages."""
    return _observations(lake, reference, query, EventFilter(chain=read(identifiers.chain_id, chain)))


@router.get("/api/v1/observations/{chain}/{emitter}", responses={**documented(), **answer(list[Observation])})
def observations_of_emitter(
    lake: PublishedLake,
    reference: BundledReference,
    chain: Chain,
    emitter: Emitter,
    query: Annotated[NumberedPages, Query()],
) -> Response:
    """Return the signatures of an emitter's messages."""
    event_filter = EventFilter(
        chain=read(identifiers.chain_id, chain), emitter=read(identifiers.emitter_address, emitter)
    )
    return _observations(lake, reference, query, event_filter)


def _observations(
    lake: RequestLake, reference: BundledReference, query: NumberedPages, event_filter: EventFilter
) -> Response:
    newest = query.sort_order == "DESC"
    size, skip = query.place(lake)
    keys = list_events(lake, event_filter, size, newest=newest, skip=skip)
    observed = load(lake, keys, _OBSERVED)
    return lake.current(
        [observation for tables in observed for observation in observations(tables, reference)]
    )


@router.get(
    "/api/v1/observations/{chain}/{emitter}/{sequence}",
    responses={**documented(), **answer(list[Observation])},
)
def observations_of_message(
    lake: PublishedLake,
    reference: BundledReference,
    message: NamedMessage,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return who signed a message: its observations, and the VAA's signers that were not observed."""
    return lake.current(observations(tables_of(lake, message, _OBSERVED), reference))


@router.get(
    "/api/v1/observations/{chain}/{emitter}/{sequence}/{signer}/{hash}",
    responses={**documented(), **answer(Observation)},
)
def one_observation(  # noqa: PLR0917
    lake: PublishedLake,
    reference: BundledReference,
    message: NamedMessage,
    signer: Annotated[str, Path(description="Guardian: 20 bytes in hex.", examples=[_GUARDIAN])],
    hash: Annotated[str, Path(description="Digest that was signed, in hex.", examples=[_HASH])],
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return one guardian's signature of a message."""
    ending = "/".join(text.lower().removeprefix("0x") for text in (signer, hash))
    for observation in observations(tables_of(lake, message, _OBSERVED), reference):
        if observation["id"].endswith(f"/{ending}"):
            return lake.current(observation)
    raise not_found("this observation")


@router.get("/api/v1/last-txs", responses={**documented(), **answer(list[MessagesOfTime])})
def last_txs(lake: PublishedLake, query: Annotated[_LastTransactions, Query()]) -> Response:
    """Return numbers of messages over time, without Pyth's, up to the end of the last published day."""
    if (query.time_span, query.sample_rate) not in scorecards.SAMPLES:
        raise bad_request("sampleRate: 1h for a timeSpan of 1d, else 1d")
    return lake.current(scorecards.last_transactions(lake.rows, query.time_span, query.sample_rate))


@router.get("/api/v1/scorecards", responses={**documented(), **answer(Scorecards)})
def cards(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return the main figures; zeros for an empty lake."""
    return lake.current(scorecards.scorecards(lake.rows))


@router.get("/api/v1/x-chain-activity", responses={**documented(), **answer(ChainActivity)})
def chain_activity(lake: PublishedLake, query: Annotated[_Activity, Query()]) -> Response:
    """Return what each chain sent, with its destinations."""
    return lake.current({"txs": scorecards.chain_activity(lake.rows, query.time_span, query.by)})


@router.get("/api/v1/top-assets-by-volume", responses={**documented(), **answer(TopAssets)})
def top_assets(lake: PublishedLake, reference: BundledReference, query: Annotated[_Top, Query()]) -> Response:
    """Return the tokens with the highest value sent."""
    return lake.current({"assets": scorecards.top_assets(lake.rows, query.time_span, reference)})


@router.get("/api/v1/top-chain-pairs-by-num-transfers", responses={**documented(), **answer(ChainPairs)})
def top_chain_pairs(lake: PublishedLake, query: Annotated[_Top, Query()]) -> Response:
    """Return the pairs of chains with the most transfers."""
    return lake.current({"chainPairs": scorecards.top_chain_pairs(lake.rows, query.time_span)})


@router.get("/api/v1/token/{chain}/{address}", responses={**documented(), **answer(TokenFacts)})
def token(
    lake: PublishedLake,
    reference: BundledReference,
    chain: Chain,
    address: Annotated[str, Path(description="32 bytes in hex, or native form.", examples=[_TOKEN])],
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return a token's symbol, CoinGecko id and decimals, attested by its own chain or listed."""
    token_id = read(identifiers.chain_id, chain), read(identifiers.emitter_address, address)
    attested = lake.rows(
        "SELECT symbol, decimals FROM asset_meta_payload WHERE token_chain = $chain "
        "AND token_address = $address AND split_part(row_key, ':', 1) = CAST($chain AS VARCHAR) "
        "ORDER BY date DESC, row_key DESC LIMIT 1",
        {"chain": token_id[0], "address": token_id[1]},
        asset_meta_payload=lake.find("asset_meta_payload", "token_address", token_id[1]),
    )
    listed = reference.tokens.get(token_id)
    if not attested and listed is None:
        raise not_found(f"token {chain}:{address}")
    metadata = (
        attested[0]
        if attested
        else {"symbol": listed and listed.symbol, "decimals": listed and listed.decimals}
    )
    return lake.current(
        {
            "symbol": metadata["symbol"] or "",
            "coingeckoId": (listed and listed.coingecko_id) or "",
            "decimals": metadata["decimals"],
        }
    )


@router.get("/v1/guardianset/current", responses={**documented(), **answer(CurrentGuardianSet)})
def guardian_set(
    lake: PublishedLake,
    reference: BundledReference,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the guardian set with the highest number that the reference data knows."""
    if not reference.guardian_sets:
        raise not_found("a guardian set")
    index = max(reference.guardian_sets)
    addresses = [f"0x{guardian.hex()}" for guardian in reference.guardian_sets[index]]
    return lake.current({"guardianSet": {"index": index, "addresses": addresses}})
