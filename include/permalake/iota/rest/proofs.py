"""Routes of proofs of inclusion, created and validated (inx-poi 1.0, inx-chronicle 1.0, Hornet 1.2)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Body
from pydantic import Field
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.config.networks import NetworkSettings
from permalake.iota.codec.faults import MalformedJsonError
from permalake.iota.codec.inclusion_proof import (
    Root,
    TrustedKeys,
    is_valid_merkle_proof,
    is_valid_path_proof,
    merkle_inclusion_proof,
    path_proof,
    path_to_message,
)
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.rest import ledger
from permalake.iota.rest.chrysalis_answers import ChrysalisMessage
from permalake.iota.rest.cones import INCLUDED, ProvenCone, cone_of
from permalake.iota.rest.parameters import BlockId, MessageId
from permalake.iota.rest.stardust_answers import StardustBlock, StardustMilestone
from permalake.web import responses
from permalake.web.answers import answer
from permalake.web.json_body import JsonRoute
from permalake.web.paging import Nothing
from permalake.web.parameter_types import hex_id
from permalake.web.problems import bad_request, documented, not_found, not_served
from permalake.web.state import PublishedLake, RequestLake

Json = dict[str, Any]
stardust = APIRouter(tags=["proof of inclusion"], responses=documented(501), route_class=JsonRoute)
chrysalis = APIRouter(tags=["proof of inclusion"], responses=documented(501), route_class=JsonRoute)
hornet = APIRouter(tags=["proof of inclusion"], responses=documented(501), route_class=JsonRoute)
Kind = Literal["inclusion", "applied", "path"]
"""What a proof shows: that a milestone references a block, applied its transaction, or leads to it."""
_INDEX = re.compile(r"[0-9]{1,10}")
Proof = Annotated[Json, Body(description="A proof, as a create route returns it.")]

ProofHash = Annotated[str, Field(pattern="^(0x)?[0-9a-f]{64}$")]


class MerkleNode(TypedDict):
    """A node of a Merkle proof: a hash ``h``, the leaf ``value``, or two nodes; a lone leaf has no ``r``."""

    h: NotRequired[ProofHash]
    value: NotRequired[ProofHash]
    l: NotRequired[MerkleNode]  # noqa: E741 - its name in the JSON
    r: NotRequired[MerkleNode]


class StardustProof(TypedDict):
    """A proof that a milestone references a block, or applied its transaction (inx-poi)."""

    milestone: StardustMilestone
    block: StardustBlock
    proof: MerkleNode


class ChrysalisMerkleProof(TypedDict):
    """A proof that a milestone applied a message's transaction."""

    milestone: ChrysalisMessage
    message: ChrysalisMessage
    proof: MerkleNode


class PathProof(TypedDict):
    """The messages between a message and a milestone (Hornet 1.2)."""

    version: Literal[1]
    milestone: ChrysalisMessage
    message: ChrysalisMessage
    proof: list[ChrysalisMessage]


class ProofVerdict(TypedDict):
    """Whether a proof holds."""

    valid: bool


@stardust.get("/create/{blockId}", responses=answer(StardustProof))
@stardust.get("/referenced-block/create/{blockId}", responses=answer(StardustProof))
def create_referenced(lake: PublishedLake, block_id: BlockId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the proof that a milestone references a block."""
    return responses.immutable_json(lake.request, _stardust_proof(lake, block_id, "inclusion"))


@stardust.get("/applied-block/create/{blockId}", responses=answer(StardustProof))
def create_applied(lake: PublishedLake, block_id: BlockId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the proof that a milestone applied a block's transaction to the ledger."""
    return responses.immutable_json(lake.request, _stardust_proof(lake, block_id, "applied"))


@stardust.post("/validate", responses=answer(ProofVerdict))
@stardust.post("/referenced-block/validate", responses=answer(ProofVerdict))
def validate_referenced(lake: PublishedLake, body: Proof, query: Nothing) -> Response:  # noqa: ARG001
    """Return whether a proof shows that a milestone references its block."""
    return _verdict(lake, body, "inclusion")


@stardust.post("/applied-block/validate", responses=answer(ProofVerdict))
def validate_applied(lake: PublishedLake, body: Proof, query: Nothing) -> Response:  # noqa: ARG001
    """Return whether a proof shows that a milestone applied its block's transaction."""
    return _verdict(lake, body, "applied")


@chrysalis.get("/create/{messageId}", responses=answer(PathProof | ChrysalisMerkleProof))
def create(lake: PublishedLake, message_id: MessageId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the proof of a message: a Merkle proof of an included transaction, else a path of messages."""
    return responses.immutable_json(lake.request, _chrysalis_proof(lake, message_id))


@chrysalis.post("/validate", responses=answer(ProofVerdict))
def validate(lake: PublishedLake, body: Proof, query: Nothing) -> Response:  # noqa: ARG001
    """Return whether a proof of either kind holds."""
    return _verdict(lake, body, "path" if "version" in body else "applied")


@hornet.get("/create/{messageId}", responses=answer(PathProof))
def create_path(lake: PublishedLake, message_id: MessageId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the path of messages from a milestone to a message, as Hornet 1.2 has it."""
    message = ledger.message(lake, hex_id(message_id, "messageId"))
    return responses.immutable_json(lake.request, _path_proof(lake, message))


@hornet.post("/validate", responses=answer(ProofVerdict))
def validate_path(lake: PublishedLake, body: Proof, query: Nothing) -> Response:  # noqa: ARG001
    """Return whether a path of messages holds."""
    return _verdict(lake, body, "path")


class _IdConvertor(StringConvertor):
    """A part of a path that is no verb of this API: to GET one is 405, not a bad id."""

    regex = "(?!validate$)[^/]+"


register_url_convertor("proof_id", _IdConvertor())


# Last, so that `create` and `validate` are no ids.
@stardust.get("/{blockId:proof_id}", responses=answer(StardustProof))
def create_stardust(lake: PublishedLake, block_id: BlockId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the proof that a milestone references a block."""
    return responses.immutable_json(lake.request, _stardust_proof(lake, block_id, "inclusion"))


@chrysalis.get("/{messageId:proof_id}", responses=answer(PathProof | ChrysalisMerkleProof))
def create_chrysalis(lake: PublishedLake, message_id: MessageId, query: Nothing) -> Response:  # noqa: ARG001
    """Return the proof of a message, as `create` does."""
    return responses.immutable_json(lake.request, _chrysalis_proof(lake, message_id))


def _stardust_proof(lake: RequestLake, text: str, root: Root) -> Json:
    message = ledger.message(lake, hex_id(text, "blockId"))
    if root == "applied" and message["inclusion_state"] != INCLUDED:
        raise bad_request(f"block {message['message_id']}: its transaction was not applied to the ledger")
    cone = cone_of(lake, message["milestone_index"])
    return merkle_inclusion_proof(cone.payload, message["message"], cone.ids(root), root, "stardust")


def _chrysalis_proof(lake: RequestLake, text: str) -> Json:
    message = ledger.message(lake, hex_id(text, "messageId"))
    if message["inclusion_state"] != INCLUDED:
        return _path_proof(lake, message)
    cone = cone_of(lake, message["milestone_index"])
    [carrier] = cone.messages(cone.carrier)
    return merkle_inclusion_proof(carrier, message["message"], cone.ids("applied"), "applied", "chrysalis")


def _path_proof(lake: RequestLake, message: ledger.Row) -> Json:
    cone, path = proven_path(lake, message)
    carrier, *steps = cone.messages(cone.carrier, *path)
    return path_proof(carrier, message["message"], steps)


def proven_path(lake: RequestLake, message: ledger.Row) -> tuple[ProvenCone, list[str]]:
    """Return a milestone's cone and the ids of messages that lead from a message's child up to it; 404."""
    cone = cone_of(lake, message["milestone_index"])
    if message["message_id"] == cone.carrier:
        # A milestone is proven by the next one.
        cone = cone_of(lake, cone.index + 1)
    parents = decode_milestone(cone.payload, "chrysalis").parents
    try:
        path = path_to_message(bytes.fromhex(message["message_id"]), parents, cone.parents())
    except ValueError:
        raise not_found(f"a milestone that proves message {message['message_id']}") from None
    return cone, [step.hex() for step in path]


def _verdict(lake: RequestLake, body: Json, kind: Kind) -> Response:
    network = lake.settings.network(lake.network)
    if not network.coordinator_public_keys:
        raise not_served(
            "the coordinator's keys are not configured: set networks.NAME.coordinator_public_keys"
        )
    try:
        return lake.current({"valid": is_valid(network, body, kind)})
    except MalformedJsonError as error:
        raise bad_request(str(error)) from None


def is_valid(network: NetworkSettings, body: Json, kind: Kind) -> bool:
    """Return whether a proof of a kind holds for the network's coordinator keys, of which there are some.

    Raises:
        MalformedJsonError: if the proof is damaged; it says where.
    """
    trusted = TrustedKeys(network.coordinator_public_keys, threshold_at(network, index_of(body)))
    if kind == "path":
        return is_valid_path_proof(body, trusted)
    return is_valid_merkle_proof(body, kind, network.protocol, trusted)


def threshold_at(network: NetworkSettings, index: int) -> int:
    """Return how many of the coordinator's keys must have signed a milestone."""
    keys = network.coordinator_public_keys
    thresholds = [
        key.threshold
        for key in keys
        if key.threshold and key.start <= index and (not key.end or index <= key.end)
    ]
    return max(thresholds, default=network.coordinator_threshold or 1)


def index_of(body: Json) -> int:
    """Return the index of a proof's milestone; -1 where there is none, which its validation reports."""
    milestone = body.get("milestone")
    inner = milestone.get("payload", milestone) if isinstance(milestone, dict) else None
    index = str(inner.get("index")) if isinstance(inner, dict) else ""
    return int(index) if _INDEX.fullmatch(index) else -1
