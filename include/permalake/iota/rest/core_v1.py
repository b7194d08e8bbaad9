"""Core API v1 of Chrysalis nodes (TIP-13), as Hornet 1 and inx-api-core-v1 answer it."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.codec.to_json import output_json, receipts_json
from permalake.iota.rest import ledger
from permalake.iota.rest.chrysalis_answers import (
    BareOutputId,
    BaseTokens,
    ChrysalisOutput,
    ChrysalisReceiptAt,
)
from permalake.iota.rest.holdings import since
from permalake.iota.rest.known_networks import node_parameters
from permalake.iota.rest.parameters import Index, OutputId, TransactionId
from permalake.iota.rest.stardust_answers import MilestoneIndex
from permalake.version import VERSION
from permalake.web.answers import Bytes32, Count, Enveloped, Seconds, answer
from permalake.web.head import HeadRoute, current_with_head
from permalake.web.paging import Nothing
from permalake.web.parameter_types import hex_id, output_id
from permalake.web.problems import documented
from permalake.web.state import PublishedLake, RequestLake, promptly

router = APIRouter(tags=["core v1"], responses=documented(), route_class=HeadRoute)
OutputIndex = Annotated[
    int, Path(alias="idx", ge=0, le=65535, description="Index of the output.", examples=[0])
]


class ChrysalisNodeInfo(TypedDict):
    """A Chrysalis node's information on itself (TIP-13); rates are zeros, which finished days do not have."""

    name: str
    version: str
    isHealthy: bool
    networkId: str
    bech32HRP: str
    minPoWScore: float
    messagesPerSecond: float
    referencedMessagesPerSecond: float
    referencedRate: float
    latestMilestoneTimestamp: Seconds
    latestMilestoneIndex: MilestoneIndex
    confirmedMilestoneIndex: MilestoneIndex
    pruningIndex: Annotated[int, Field(ge=-1, description="The milestone before the first one held.")]
    features: list[str]


class ChrysalisOutputState(TypedDict):
    """An output, and when it was spent."""

    messageId: Bytes32
    transactionId: Bytes32
    outputIndex: Count
    isSpent: bool
    milestoneIndexSpent: NotRequired[MilestoneIndex]
    transactionIdSpent: NotRequired[Bytes32]
    ledgerIndex: MilestoneIndex
    output: ChrysalisOutput


class ChrysalisMilestonePlace(TypedDict):
    """A milestone's message and time."""

    index: MilestoneIndex
    messageId: Bytes32
    timestamp: Seconds


class ChrysalisUtxoChanges(TypedDict):
    """The outputs that a milestone created and consumed, in white-flag order."""

    index: MilestoneIndex
    createdOutputs: list[BareOutputId]
    consumedOutputs: list[BareOutputId]


class ChrysalisReceipts(TypedDict):
    """Receipts of migrated funds."""

    receipts: list[ChrysalisReceiptAt]


class ChrysalisTreasury(TypedDict):
    """The treasury; zeros where there never was one."""

    milestoneId: Bytes32
    amount: BaseTokens


@router.get("/info", responses=answer(Enveloped[ChrysalisNodeInfo]))
def info(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return what the network is and how far it is published; headers have the end of its live head."""
    network = lake.settings.network(lake.network)
    parameters = node_parameters(lake.network, network)
    last = ledger.milestone(lake, ledger.ledger_index(lake))
    data = {
        "name": "PERMALAKE",
        "version": VERSION,
        "isHealthy": True,
        "networkId": parameters.network_name,
        "bech32HRP": network.bech32_hrp,
        "minPoWScore": parameters.min_pow_score,
        "messagesPerSecond": 0,
        "referencedMessagesPerSecond": 0,
        "referencedRate": 100,
        "latestMilestoneTimestamp": last["timestamp"],
        "latestMilestoneIndex": last["milestone_index"],
        "confirmedMilestoneIndex": last["milestone_index"],
        "pruningIndex": since(lake) - 1,
        "features": [],
    }
    return current_with_head(lake, {"data": data})


@router.get("/outputs/{outputId}", responses=answer(Enveloped[ChrysalisOutputState]))
def output(lake: PublishedLake, requested_id: OutputId, query: Nothing) -> Response:  # noqa: ARG001
    """Return an output, and whether it is spent."""
    return _output(lake, output_id(requested_id))


@router.get("/outputs/{transactionId}/{idx}", responses=answer(Enveloped[ChrysalisOutputState]))
def output_of_transaction(
    lake: PublishedLake,
    transaction_id: TransactionId,
    index: OutputIndex,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return an output by transaction and index, as chronicle.rs takes it."""
    return _output(lake, hex_id(transaction_id, "transactionId") + index.to_bytes(2, "little").hex())


@router.get("/milestones/{index}", responses=answer(Enveloped[ChrysalisMilestonePlace]))
async def milestone(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return a milestone's message and time."""
    row = await promptly(lake, lambda: ledger.milestone(lake, index))
    data = {"index": index, "messageId": row["message_id"], "timestamp": row["timestamp"]}
    return lake.current({"data": data})


@router.get("/milestones/{index}/utxo-changes", responses=answer(Enveloped[ChrysalisUtxoChanges]))
def utxo_changes(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return the outputs that a milestone created and consumed."""
    created, consumed = ledger.utxo_changes(lake, index)
    return lake.current({"data": {"index": index, "createdOutputs": created, "consumedOutputs": consumed}})


@router.get("/receipts", responses=answer(Enveloped[ChrysalisReceipts]))
def receipts(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return every receipt of migrated funds."""
    migrated = receipts_json(ledger.receipt_payloads(lake), "chrysalis")
    return lake.current({"data": {"receipts": migrated}})


@router.get("/receipts/{index}", responses=answer(Enveloped[ChrysalisReceipts]))
def receipts_migrated_at(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return the receipts of funds that were migrated at a milestone of the old network."""
    migrated = receipts_json(ledger.receipt_payloads(lake), "chrysalis")
    return lake.current(
        {"data": {"receipts": [entry for entry in migrated if entry["receipt"]["migratedAt"] == index]}}
    )


@router.get("/treasury", responses=answer(Enveloped[ChrysalisTreasury]))
def treasury(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return the treasury."""
    milestone_id, amount = ledger.treasury(lake)
    return lake.current({"data": {"milestoneId": milestone_id, "amount": amount}})


def _output(lake: RequestLake, requested_id: str) -> Response:
    row = ledger.output(lake, requested_id, ("legacy",))
    use = ledger.spender(lake, row)
    # Of a receipt's output, Hornet names the message of the milestone.
    message_id = row["message_id"] or ledger.milestone(lake, row["milestone_index"])["message_id"]
    spending: dict[str, Any] = (
        {"milestoneIndexSpent": use["milestone_index"], "transactionIdSpent": use["transaction_id"]}
        if use
        else {}
    )
    data = {
        "messageId": message_id,
        "transactionId": requested_id[:64],
        "outputIndex": int.from_bytes(bytes.fromhex(requested_id[64:]), "little"),
        "isSpent": bool(use),
        **spending,
        "ledgerIndex": ledger.ledger_index(lake),
        "output": output_json(row["data"], "chrysalis"),
    }
    return lake.current({"data": data})
