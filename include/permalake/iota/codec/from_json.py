"""JSON of a node's REST API (TIP-13 on Chrysalis, TIP-25 on Stardust) to bytes.

The inverse of :mod:`~permalake.iota.codec.to_json`, and more tolerant: hex with or without ``0x``, numbers or
decimal text, empty fields present or absent. JSON of another shape raises :class:`MalformedJsonError`. Only
their id can tell whether the bytes are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from permalake.iota.codec.encode import (
    MilestoneDraft,
    ReferenceUnlock,
    SignatureUnlock,
    TaggedData,
    Transaction,
    pack_block,
    pack_milestone,
    pack_milestone_essence,
    pack_tagged_data,
    pack_transaction,
)
from permalake.iota.codec.encode_outputs import Address, NativeToken, Output, pack_output
from permalake.iota.codec.faults import json_shape
from permalake.iota.codec.features import ISSUER, METADATA, SENDER, TAG
from permalake.iota.codec.json_stardust import ADDRESS_NAMES
from permalake.iota.codec.layout import LAYOUTS
from permalake.iota.codec.milestones import CHRYSALIS_MILESTONE, STARDUST_MILESTONE
from permalake.iota.codec.outputs import ALIAS, FOUNDRY, NFT, Protocol
from permalake.iota.codec.receipts import MigratedFunds, ProtocolParameters, Receipt
from permalake.iota.codec.unlock_conditions import (
    ADDRESS,
    EXPIRATION,
    GOVERNOR,
    IMMUTABLE_ALIAS,
    STATE_CONTROLLER,
    STORAGE_RETURN,
    TIMELOCK,
)

Json = Mapping[str, Any]


def pack_json_block(body: Json, protocol: Protocol = "stardust") -> bytes:
    """Return the bytes of a block or message."""
    with json_shape("block"):
        chrysalis = protocol == "chrysalis"
        payload = body.get("payload")
        return pack_block(
            [_hex(parent) for parent in body["parentMessageIds" if chrysalis else "parents"]],
            _payload(payload, protocol) if payload else b"",
            protocol,
            nonce=int(body["nonce"]),
            network_id=int(body["networkId"]) if chrysalis else 0,
        )


def pack_json_milestone(body: Json, protocol: Protocol = "stardust") -> bytes:
    """Return the bytes of a milestone payload, with its type."""
    with json_shape("milestone"):
        return _milestone(body, protocol)


def pack_json_output(body: Json) -> bytes:
    """Return the bytes of an output of either protocol."""
    with json_shape("output"):
        return pack_output(_output(body))


def _milestone(body: Json, protocol: Protocol) -> bytes:
    if protocol == "chrysalis":
        pairs = list(zip(body["publicKeys"], body["signatures"], strict=True))
    else:
        pairs = [(signature["publicKey"], signature["signature"]) for signature in body["signatures"]]
    signed = [(_hex(key), _hex(signature)) for key, signature in pairs]
    draft = _chrysalis_draft(body, signed) if protocol == "chrysalis" else _stardust_draft(body)
    return pack_milestone(pack_milestone_essence(draft, protocol), signed, protocol)


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _payload(body: Json, protocol: Protocol) -> bytes:
    layout, kind = LAYOUTS[protocol], body["type"]
    if kind == layout.tagged_data:
        return pack_tagged_data(_tagged(body), protocol)
    if kind == layout.transaction:
        return pack_transaction(_transaction(body, protocol), protocol)
    if kind == (CHRYSALIS_MILESTONE if protocol == "chrysalis" else STARDUST_MILESTONE):
        return _milestone(body, protocol)
    raise ValueError(f"payload type {kind}")


def _tagged(body: Json) -> TaggedData:
    """Return tagged data (nodes leave out empty fields) or an indexation."""
    return TaggedData(_hex(body.get("tag") or body.get("index") or ""), _hex(body.get("data") or ""))


def _transaction(body: Json, protocol: Protocol) -> Transaction:
    essence, stardust = body["essence"], protocol == "stardust"
    inner = essence.get("payload")
    return Transaction(
        inputs=tuple(
            (_hex(reference["transactionId"]), reference["transactionOutputIndex"])
            for reference in essence["inputs"]
        ),
        outputs=tuple(_output(output) for output in essence["outputs"]),
        unlocks=tuple(_unlock(unlock) for unlock in body["unlocks" if stardust else "unlockBlocks"]),
        payload=_tagged(inner) if inner else None,
        network_id=int(essence["networkId"]) if stardust else 0,
        inputs_commitment=_hex(essence["inputsCommitment"]) if stardust else bytes(32),
    )


def _unlock(body: Json) -> SignatureUnlock | ReferenceUnlock:
    if body["type"]:
        return ReferenceUnlock(body["type"], body["reference"])
    signature = body["signature"]
    return SignatureUnlock(_hex(signature["publicKey"]), _hex(signature["signature"]))


def _address(body: Json) -> Address:
    kind = body["type"]
    return Address(kind, _hex(body.get("address") or body[ADDRESS_NAMES[kind]]))


def _output(body: Json) -> Output:
    kind, amount = body["type"], int(body["amount"])
    if "unlockConditions" not in body:
        return Output(kind, amount, _address(body["address"]) if "address" in body else None)
    fields: dict[str, Any] = {
        "native_tokens": tuple(
            NativeToken(_hex(token["id"]), int(token["amount"], 16))
            for token in body.get("nativeTokens") or ()
        )
    }
    for condition in body["unlockConditions"]:
        fields |= _condition(condition)
    for feature in body.get("features") or ():
        fields |= _feature(feature, immutable=False)
    for feature in body.get("immutableFeatures") or ():
        fields |= _feature(feature, immutable=True)
    return Output(kind, amount, **fields, **_own(body))


def _own(body: Json) -> dict[str, Any]:
    """Return the fields that only outputs of this type have."""
    if body["type"] == NFT:
        return {"chain_id": _hex(body["nftId"])}
    if body["type"] == ALIAS:
        return {
            "chain_id": _hex(body["aliasId"]),
            "state_index": body["stateIndex"],
            "state_metadata": _hex(body.get("stateMetadata") or ""),
            "foundry_counter": body["foundryCounter"],
        }
    if body["type"] == FOUNDRY:
        names = {"minted": "mintedTokens", "melted": "meltedTokens", "maximum": "maximumSupply"}
        scheme = body["tokenScheme"]
        supply = {field: int(scheme[name], 16) for field, name in names.items()}
        return {"serial_number": body["serialNumber"], **supply}
    return {}


def _condition(body: Json) -> dict[str, Any]:
    kind = body["type"]
    if kind in (ADDRESS, IMMUTABLE_ALIAS):
        return {"address": _address(body["address"])}
    if kind == STORAGE_RETURN:
        return {"storage_return": (_address(body["returnAddress"]), int(body["amount"]))}
    if kind == TIMELOCK:
        return {"timelock": body["unixTime"]}
    if kind == EXPIRATION:
        return {"expiration": (_address(body["returnAddress"]), body["unixTime"])}
    if kind == STATE_CONTROLLER:
        return {"state_controller": _address(body["address"])}
    if kind == GOVERNOR:
        return {"governor": _address(body["address"])}
    raise ValueError(f"unlock condition {kind}")


def _feature(body: Json, *, immutable: bool) -> dict[str, Any]:
    kind = body["type"]
    if kind == SENDER:
        return {"sender": _address(body["address"])}
    if kind == ISSUER:
        return {"issuer": _address(body["address"])}
    if kind == METADATA:
        return {"immutable_metadata" if immutable else "metadata": _hex(body["data"])}
    if kind == TAG:
        return {"tag": _hex(body["tag"])}
    raise ValueError(f"feature {kind}")


def _chrysalis_draft(body: Json, signed: list[tuple[bytes, bytes]]) -> MilestoneDraft:
    receipt = body.get("receipt")
    return MilestoneDraft(
        index=body["index"],
        timestamp=body["timestamp"],
        parents=tuple(_hex(parent) for parent in body["parentMessageIds"]),
        applied_root=_hex(body["inclusionMerkleProof"]),
        receipt=_receipt(receipt) if receipt else None,
        public_keys=tuple(key for key, _ in signed),
        next_pow_score=body.get("nextPoWScore") or 0,
        next_pow_score_index=body.get("nextPoWScoreMilestoneIndex") or 0,
    )


def _stardust_draft(body: Json) -> MilestoneDraft:
    options = {option["type"]: option for option in body.get("options") or ()}
    receipt, announced = options.get(0), options.get(1)
    return MilestoneDraft(
        index=body["index"],
        timestamp=body["timestamp"],
        parents=tuple(_hex(parent) for parent in body["parents"]),
        applied_root=_hex(body["appliedMerkleRoot"]),
        inclusion_root=_hex(body["inclusionMerkleRoot"]),
        previous_milestone_id=_hex(body["previousMilestoneId"]),
        metadata=_hex(body.get("metadata") or ""),
        receipt=_receipt(receipt) if receipt else None,
        protocol_parameters=ProtocolParameters(
            announced["targetMilestoneIndex"], announced["protocolVersion"], _hex(announced["params"])
        )
        if announced
        else None,
    )


def _receipt(body: Json) -> Receipt:
    treasury = body["transaction"]
    funds = []
    for fund in body["funds"]:
        owner = _address(fund["address"])
        hashed = _hex(fund["tailTransactionHash"])
        funds.append(MigratedFunds(hashed, owner.kind, owner.value, int(fund["deposit"])))
    return Receipt(
        migrated_at=body["migratedAt"],
        final=bool(body["final"]),
        funds=tuple(funds),
        treasury_input=_hex(treasury["input"]["milestoneId"]),
        treasury_output=int(treasury["output"]["amount"]),
    )
