"""Core API v2 of Stardust nodes (TIP-25), as Hornet 2 answers it."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.to_json import (
    BLOCKS_JSON,
    block_json,
    milestone_payload_json,
    output_json,
    receipts_json,
)
from permalake.iota.rest import ledger
from permalake.iota.rest.core_v2_answers import (
    BlockMetadata,
    OutputMetadata,
    OutputWithMetadata,
    StardustNodeInfo,
    StardustReceipts,
    StardustTreasury,
    UtxoChanges,
)
from permalake.iota.rest.holdings import since
from permalake.iota.rest.known_networks import node_parameters
from permalake.iota.rest.parameters import (
    BlockId,
    Index,
    MilestoneId,
    OutputId,
    TransactionId,
    milestone_index,
)
from permalake.iota.rest.stardust_answers import (
    StardustBlock,
    StardustMilestone,
)
from permalake.lake.serving import Scan
from permalake.version import VERSION
from permalake.web.answers import answer, json_or_raw
from permalake.web.batches import BatchedAnswer, alone
from permalake.web.head import HeadRoute, current_with_head
from permalake.web.paging import Nothing
from permalake.web.parameter_types import hex_id, output_id
from permalake.web.problems import documented, not_found
from permalake.web.responses import immutable_bytes, immutable_json, wants_raw
from permalake.web.state import PublishedLake, RequestLake, at_once, copied_rows, promptly

router = APIRouter(tags=["core v2"], responses=documented(), route_class=HeadRoute)


@router.get("/info", responses=answer(StardustNodeInfo))
def info(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return what the network is and how far it is published; headers have the end of its live head."""
    network = lake.settings.network(lake.network)
    parameters = node_parameters(lake.network, network)
    last = ledger.milestone(lake, ledger.ledger_index(lake))
    latest = {
        "index": last["milestone_index"],
        "timestamp": last["timestamp"],
        "milestoneId": f"0x{decode_milestone(last['payload'], 'stardust').milestone_id.hex()}",
    }
    token = parameters.base_token
    assert token is not None  # noqa: S101
    return current_with_head(
        lake,
        {
            "name": "PERMALAKE",
            "version": VERSION,
            "status": {
                "isHealthy": True,
                "latestMilestone": latest,
                "confirmedMilestone": latest,
                "pruningIndex": since(lake) - 1,
            },
            "supportedProtocolVersions": [parameters.protocol_version],
            "protocol": {
                "version": parameters.protocol_version,
                "networkName": parameters.network_name,
                "bech32Hrp": network.bech32_hrp,
                "minPowScore": parameters.min_pow_score,
                "belowMaxDepth": network.below_max_depth,
                "rentStructure": {
                    "vByteCost": network.v_byte_cost or 0,
                    "vByteFactorData": parameters.v_byte_factor_data,
                    "vByteFactorKey": parameters.v_byte_factor_key,
                },
                "tokenSupply": str(parameters.token_supply),
            },
            "pendingProtocolParameters": [],
            "baseToken": {
                "name": token.name,
                "tickerSymbol": token.ticker_symbol,
                "unit": token.unit,
                **({"subunit": token.subunit} if token.subunit else {}),
                "decimals": token.decimals,
                "useMetricPrefix": token.use_metric_prefix,
            },
            "metrics": {"blocksPerSecond": 0, "referencedBlocksPerSecond": 0, "referencedRate": 100},
            "features": [],
        },
    )


def _block_of_id(lake: RequestLake, block_id: str) -> Response | BatchedAnswer:
    return _block(lake.request, ledger.any_message(lake, hex_id(block_id, "blockId")))


@router.get("/blocks/{blockId}", responses=json_or_raw(StardustBlock))
@at_once(_block_of_id)
async def block(lake: PublishedLake, block_id: BlockId, query: Nothing) -> Response:  # noqa: ARG001
    """Return a block, as JSON or as its bytes."""
    return await promptly(lake, lambda: alone(_block_of_id(lake, block_id)))


@router.get("/blocks/{blockId}/metadata", responses=answer(BlockMetadata))
async def block_metadata(lake: PublishedLake, block_id: BlockId, query: Nothing) -> Response:  # noqa: ARG001
    """Return how a block was referenced, and what the ledger made of it."""
    message_id = hex_id(block_id, "blockId")
    return await promptly(lake, lambda: lake.current(_metadata(lake, ledger.any_message(lake, message_id))))


@router.get("/transactions/{transactionId}/included-block", responses=json_or_raw(StardustBlock))
def included_block(
    request: Request,
    lake: PublishedLake,
    transaction_id: TransactionId,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the block with which a transaction was included."""
    return alone(_block(request, ledger.included_message(lake, hex_id(transaction_id, "transactionId"))))


@router.get("/transactions/{transactionId}/included-block/metadata", responses=answer(BlockMetadata))
def included_block_metadata(
    lake: PublishedLake,
    transaction_id: TransactionId,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the metadata of the block with which a transaction was included."""
    return lake.current(
        _metadata(lake, ledger.included_message(lake, hex_id(transaction_id, "transactionId")))
    )


@router.get("/outputs/{outputId}", responses=json_or_raw(OutputWithMetadata))
def output(request: Request, lake: PublishedLake, requested_id: OutputId, query: Nothing) -> Response:  # noqa: ARG001
    """Return an output with its metadata, or its bytes."""
    row = ledger.output(lake, output_id(requested_id))
    if raw := wants_raw(request):
        return immutable_bytes(request, row["data"], raw)
    return lake.current(
        {"metadata": _output_metadata(lake, row), "output": output_json(row["data"], "stardust")}
    )


@router.get("/outputs/{outputId}/metadata", responses=answer(OutputMetadata))
def output_metadata(lake: PublishedLake, requested_id: OutputId, query: Nothing) -> Response:  # noqa: ARG001
    """Return when an output was created and spent."""
    return lake.current(_output_metadata(lake, ledger.output(lake, output_id(requested_id))))


def _milestone_of_index(lake: RequestLake, index: str) -> Response:
    return milestone_payload(lake.request, ledger.milestone(lake, milestone_index(index)))


@router.get("/milestones/by-index/{index}", responses=json_or_raw(StardustMilestone))
@at_once(_milestone_of_index)
async def milestone_by_index(request: Request, lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return the payload of a milestone, as JSON or as its bytes."""
    return await promptly(lake, lambda: milestone_payload(request, ledger.milestone(lake, index)))


@router.get("/milestones/by-index/{index}/utxo-changes", responses=answer(UtxoChanges))
def utxo_changes_by_index(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return the outputs that a milestone created and consumed."""
    return _utxo_changes(lake, index)


def _milestone_of_id(lake: RequestLake, milestone_id: str) -> Response:
    return milestone_payload(lake.request, milestone_by_id(lake, hex_id(milestone_id, "milestoneId")))


@router.get("/milestones/{milestoneId}", responses=json_or_raw(StardustMilestone))
@at_once(_milestone_of_id)
async def milestone(lake: PublishedLake, milestone_id: MilestoneId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the payload of a milestone, as JSON or as its bytes."""
    return await promptly(lake, lambda: _milestone_of_id(lake, milestone_id))


@router.get("/milestones/{milestoneId}/utxo-changes", responses=answer(UtxoChanges))
def utxo_changes(lake: PublishedLake, milestone_id: MilestoneId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the outputs that a milestone created and consumed."""
    row = milestone_by_id(lake, hex_id(milestone_id, "milestoneId"))
    return _utxo_changes(lake, row["milestone_index"])


@router.get("/receipts", responses=answer(StardustReceipts))
def receipts(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return every receipt of migrated funds."""
    return lake.current({"receipts": receipts_json(ledger.receipt_payloads(lake), "stardust")})


@router.get("/receipts/{index}", responses=answer(StardustReceipts))
def receipts_migrated_at(lake: PublishedLake, index: Index, query: Nothing) -> Response:  # noqa: ARG001
    """Return the receipts of funds that were migrated at a milestone of the old network."""
    migrated = receipts_json(ledger.receipt_payloads(lake), "stardust")
    return lake.current(
        {"receipts": [entry for entry in migrated if entry["receipt"]["migratedAt"] == index]}
    )


@router.get("/treasury", responses=answer(StardustTreasury))
def treasury(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return the treasury."""
    milestone_id, amount = ledger.treasury(lake)
    return lake.current({"milestoneId": f"0x{milestone_id}", "amount": str(amount)})


def milestone_by_id(lake: RequestLake, milestone_id: str) -> ledger.Row:
    """Return the row of the milestone with an id; 404 where it is not published."""
    places = lake.find("milestones", "payload", milestone_id).milestones or ()
    for index in places:
        for row in copied_rows(lake, "milestones", Scan(milestones=(index,)), "milestone_index", index):
            if decode_milestone(row["payload"], "stardust").milestone_id.hex() == milestone_id:
                return row
    raise not_found(milestone_id)


def milestone_payload(request: Request, row: ledger.Row) -> Response:
    """Return a milestone's payload in the form that is asked for."""
    if raw := wants_raw(request):
        return immutable_bytes(request, row["payload"], raw)
    return immutable_json(request, milestone_payload_json(row["payload"], "stardust"))


def _block(request: Request, row: ledger.Row) -> Response | BatchedAnswer:
    if raw := wants_raw(request):
        return immutable_bytes(request, row["message"], raw)
    return BatchedAnswer(BLOCKS_JSON["stardust"], row["message"], partial(immutable_json, request))


def _metadata(lake: RequestLake, row: ledger.Row) -> BlockMetadata:
    content = block_json(row["message"], "stardust")
    payload = content.get("payload") or {}
    metadata: BlockMetadata = {
        "blockId": f"0x{row['message_id']}",
        "parents": content["parents"],
        "isSolid": True,
        "referencedByMilestoneIndex": row["milestone_index"],
        "ledgerInclusionState": ledger.STATES[row["inclusion_state"]],
    }
    if payload.get("type") == 7:
        metadata["milestoneIndex"] = payload["index"]
    if row["inclusion_state"] == 0:
        metadata["conflictReason"] = row["conflict_reason"]
    if row["milestone_index"] is not None:
        metadata["whiteFlagIndex"] = ledger.white_flag_index(lake, row)
    return metadata


def _output_metadata(lake: RequestLake, row: ledger.Row) -> OutputMetadata:
    requested_id = row["output_id"]
    transaction_id = requested_id[:64]
    use = ledger.spender(lake, row)
    metadata: OutputMetadata = {
        "blockId": f"0x{_carrier(lake, row)}",
        "transactionId": f"0x{transaction_id}",
        "outputIndex": int.from_bytes(bytes.fromhex(requested_id[64:]), "little"),
        "isSpent": bool(use),
        "milestoneIndexBooked": row["milestone_index"],
        "milestoneTimestampBooked": int(row["ms_timestamp"].timestamp()),
        "ledgerIndex": ledger.ledger_index(lake),
    }
    if use:
        metadata["milestoneIndexSpent"] = use["milestone_index"]
        metadata["milestoneTimestampSpent"] = int(use["ms_timestamp"].timestamp())
        metadata["transactionIdSpent"] = f"0x{use['transaction_id']}"
    return metadata


def _carrier(lake: RequestLake, row: ledger.Row) -> str:
    """Return the block with the transaction of an output; zeros for a receipt's, as Hornet has it."""
    if row.get("message_id"):
        return str(row["message_id"])
    carriers = lake.rows(
        "SELECT message_id FROM transactions WHERE transaction_id = $id AND inclusion_state = 1 LIMIT 1",
        {"id": row["output_id"][:64]},
        transactions=Scan(milestones=[row["milestone_index"]]),
    )
    return str(carriers[0]["message_id"]) if carriers else "0" * 64


def _utxo_changes(lake: RequestLake, index: int) -> Response:
    created, consumed = ledger.utxo_changes(lake, index)
    return lake.current(
        {
            "index": index,
            "createdOutputs": [f"0x{created_id}" for created_id in created],
            "consumedOutputs": [f"0x{consumed_id}" for consumed_id in consumed],
        }
    )
