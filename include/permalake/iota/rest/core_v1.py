"""Core API v1 of Chrysalis nodes (TIP-13), as Hornet 1 and inx-api-core-v1 answer it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from permalake.iota.codec.to_json import output_json, receipts_json
from permalake.iota.rest import ledger
from permalake.iota.rest.holdings import since
from permalake.iota.rest.known_networks import node_parameters
from permalake.iota.rest.parameters import Index, Nothing, OutputId
from permalake.version import VERSION
from permalake.web.params import hex_id, hex_schema, output_id
from permalake.web.problems import documented
from permalake.web.state import PublishedLake, RequestLake, promptly

router = APIRouter(tags=["core v1"], responses=documented())
TransactionPart = Annotated[
    str,
    Path(
        alias="transactionId",
        description="Id of a transaction: 32 bytes as hex.",
        examples=["05136f7e6ceeff97d833baca0fd7a0bcfb7d33b1e60914460f51cabdd3b0187f"],
        json_schema_extra=hex_schema(32),
    ),
]
OutputIndex = Annotated[
    int, Path(alias="idx", ge=0, le=65535, description="Index of the output.", examples=[0])
]


@router.get("/info")
def info(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return what the network is and how far it is published."""
    network = lake.settings.network(lake.network)
    known = node_parameters(lake.network, network)
    last = ledger.milestone(lake, ledger.ledger_index(lake))
    data = {
        "name": "PERMALAKE",
        "version": VERSION,
        "isHealthy": True,
        "networkId": known.network_name,
        "bech32HRP": network.bech32_hrp,
        "minPoWScore": known.min_pow_score,
        "messagesPerSecond": 0,
        "referencedMessagesPerSecond": 0,
        "referencedRate": 100,
        "latestMilestoneTimestamp": last["timestamp"],
        "latestMilestoneIndex": last["milestone_index"],
        "confirmedMilestoneIndex": last["milestone_index"],
        "pruningIndex": since(lake) - 1,
        "features": [],
    }
    return lake.current({"data": data})


@router.get("/outputs/{outputId}")
def output(lake: PublishedLake, wanted: OutputId, query: Nothing) -> Response:  # noqa: ARG001
    """Return an output, and whether it is spent."""
    return _output(lake, output_id(wanted))


@router.get("/outputs/{transactionId}/{idx}")
def output_of_transaction(
    lake: PublishedLake,
    transaction_id: TransactionPart,
    index: OutputIndex,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return an output by transaction and index, as chronicle.rs takes it."""
    return _output(lake, hex_id(transaction_id, "transactionId") + index.to_bytes(2, "little").hex())


@router.get("/milestones/{index}")
async def milestone(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return a milestone's message and time."""
    row = await promptly(lake, lambda: ledger.milestone(lake, index))
    data = {"index": index, "messageId": row["message_id"], "timestamp": row["timestamp"]}
    return lake.current({"data": data})


@router.get("/milestones/{index}/utxo-changes")
def utxo_changes(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return the outputs that a milestone created and consumed."""
    created, consumed = ledger.utxo_changes(lake, index)
    return lake.current({"data": {"index": index, "createdOutputs": created, "consumedOutputs": consumed}})


@router.get("/receipts")
def receipts(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return every receipt of migrated funds."""
    found = receipts_json(ledger.receipt_payloads(lake), "chrysalis")
    return lake.current({"data": {"receipts": found}})


@router.get("/receipts/{index}")
def receipts_migrated_at(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return the receipts of funds that were migrated at a milestone of the old network."""
    found = receipts_json(ledger.receipt_payloads(lake), "chrysalis")
    return lake.current(
        {"data": {"receipts": [one for one in found if one["receipt"]["migratedAt"] == index]}}
    )


@router.get("/treasury")
def treasury(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return the treasury."""
    milestone_id, amount = ledger.treasury(lake)
    return lake.current({"data": {"milestoneId": milestone_id, "amount": amount}})


def _output(lake: RequestLake, wanted: str) -> Response:
    row = ledger.output(lake, wanted, ("legacy",))
    use = ledger.spent(lake, [wanted]).get(wanted)
    # Of a receipt's output, Hornet names the message of the milestone.
    message_id = row["message_id"] or ledger.milestone(lake, row["milestone_index"])["message_id"]
    spending: dict[str, Any] = (
        {"milestoneIndexSpent": use["milestone_index"], "transactionIdSpent": use["transaction_id"]}
        if use
        else {}
    )
    data = {
        "messageId": message_id,
        "transactionId": wanted[:64],
        "outputIndex": int.from_bytes(bytes.fromhex(wanted[64:]), "little"),
        "isSpent": bool(use),
        **spending,
        "ledgerIndex": ledger.ledger_index(lake),
        "output": output_json(row["data"], "chrysalis"),
    }
    return lake.current({"data": data})
