"""JSON of a node's REST API (TIP-13 on Chrysalis, TIP-25 on Stardust) to the bytes that it stands for.

For answers that come as JSON where bytes were asked for, or have no other form. What does not have the shape
raises ValueError, KeyError or TypeError; whether the bytes are right is for their id to tell.
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
from permalake.iota.codec.features import ISSUER, METADATA, SENDER, TAG
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
_ADDRESS_NAMES = {0: "pubKeyHash", 8: "aliasId", 16: "nftId"}


def pack_json_block(told: Json, protocol: Protocol = "stardust") -> bytes:
    """A block (message)."""
    chrysalis = protocol == "chrysalis"
    payload = told.get("payload")
    return pack_block(
        [_hex(parent) for parent in told["parentMessageIds" if chrysalis else "parents"]],
        _payload(payload, protocol) if payload else b"",
        protocol,
        nonce=int(told["nonce"]),
        network_id=int(told["networkId"]) if chrysalis else 0,
    )


def pack_json_milestone(told: Json, protocol: Protocol = "stardust") -> bytes:
    """A milestone payload, with its type."""
    signed = [
        (_hex(key), _hex(signature))
        for key, signature in (
            zip(told["publicKeys"], told["signatures"], strict=True)
            if protocol == "chrysalis"
            else ((one["publicKey"], one["signature"]) for one in told["signatures"])
        )
    ]
    draft = _chrysalis_draft(told, signed) if protocol == "chrysalis" else _stardust_draft(told)
    return pack_milestone(pack_milestone_essence(draft, protocol), signed, protocol)


def pack_json_output(told: Json) -> bytes:
    """An output of either protocol."""
    return pack_output(_output(told))


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _payload(told: Json, protocol: Protocol) -> bytes:
    layout, kind = LAYOUTS[protocol], told["type"]
    if kind == layout.tagged_data:
        return pack_tagged_data(_tagged(told), protocol)
    if kind == layout.transaction:
        return pack_transaction(_transaction(told, protocol), protocol)
    if kind == (CHRYSALIS_MILESTONE if protocol == "chrysalis" else STARDUST_MILESTONE):
        return pack_json_milestone(told, protocol)
    raise ValueError(f"payload type {kind}")


def _tagged(told: Json) -> TaggedData:
    """Tagged data (Stardust leaves out what is empty) or an indexation."""
    return TaggedData(_hex(told.get("tag") or told.get("index") or ""), _hex(told.get("data") or ""))


def _transaction(told: Json, protocol: Protocol) -> Transaction:
    essence, stardust = told["essence"], protocol == "stardust"
    inner = essence.get("payload")
    return Transaction(
        inputs=tuple(
            (_hex(one["transactionId"]), one["transactionOutputIndex"]) for one in essence["inputs"]
        ),
        outputs=tuple(_output(one) for one in essence["outputs"]),
        unlocks=tuple(_unlock(one) for one in told["unlocks" if stardust else "unlockBlocks"]),
        payload=_tagged(inner) if inner else None,
        network_id=int(essence["networkId"]) if stardust else 0,
        inputs_commitment=_hex(essence["inputsCommitment"]) if stardust else bytes(32),
    )


def _unlock(told: Json) -> SignatureUnlock | ReferenceUnlock:
    if told["type"]:
        return ReferenceUnlock(told["type"], told["reference"])
    signature = told["signature"]
    return SignatureUnlock(_hex(signature["publicKey"]), _hex(signature["signature"]))


def _address(told: Json) -> Address:
    kind = told["type"]
    return Address(kind, _hex(told.get("address") or told[_ADDRESS_NAMES[kind]]))


def _output(told: Json) -> Output:
    kind, amount = told["type"], int(told["amount"])
    if "unlockConditions" not in told:
        return Output(kind, amount, _address(told["address"]) if "address" in told else None)
    fields: dict[str, Any] = {
        "native_tokens": tuple(
            NativeToken(_hex(token["id"]), int(token["amount"], 16))
            for token in told.get("nativeTokens") or ()
        )
    }
    for condition in told["unlockConditions"]:
        fields |= _condition(condition)
    for feature in told.get("features") or ():
        fields |= _feature(feature, immutable=False)
    for feature in told.get("immutableFeatures") or ():
        fields |= _feature(feature, immutable=True)
    return Output(kind, amount, **fields, **_own(told))


def _own(told: Json) -> dict[str, Any]:
    """What only outputs of the type have."""
    if told["type"] == NFT:
        return {"chain_id": _hex(told["nftId"])}
    if told["type"] == ALIAS:
        return {
            "chain_id": _hex(told["aliasId"]),
            "state_index": told["stateIndex"],
            "state_metadata": _hex(told.get("stateMetadata") or ""),
            "foundry_counter": told["foundryCounter"],
        }
    if told["type"] == FOUNDRY:
        names = {"minted": "mintedTokens", "melted": "meltedTokens", "maximum": "maximumSupply"}
        scheme = told["tokenScheme"]
        supply = {field: int(scheme[name], 16) for field, name in names.items()}
        return {"serial_number": told["serialNumber"], **supply}
    return {}


def _condition(told: Json) -> dict[str, Any]:
    kind = told["type"]
    if kind in (ADDRESS, IMMUTABLE_ALIAS):
        return {"address": _address(told["address"])}
    if kind == STORAGE_RETURN:
        return {"storage_return": (_address(told["returnAddress"]), int(told["amount"]))}
    if kind == TIMELOCK:
        return {"timelock": told["unixTime"]}
    if kind == EXPIRATION:
        return {"expiration": (_address(told["returnAddress"]), told["unixTime"])}
    if kind == STATE_CONTROLLER:
        return {"state_controller": _address(told["address"])}
    if kind == GOVERNOR:
        return {"governor": _address(told["address"])}
    raise ValueError(f"unlock condition {kind}")


def _feature(told: Json, *, immutable: bool) -> dict[str, Any]:
    kind = told["type"]
    if kind == SENDER:
        return {"sender": _address(told["address"])}
    if kind == ISSUER:
        return {"issuer": _address(told["address"])}
    if kind == METADATA:
        return {"immutable_metadata" if immutable else "metadata": _hex(told["data"])}
    if kind == TAG:
        return {"tag": _hex(told["tag"])}
    raise ValueError(f"feature {kind}")


def _chrysalis_draft(told: Json, signed: list[tuple[bytes, bytes]]) -> MilestoneDraft:
    receipt = told.get("receipt")
    return MilestoneDraft(
        index=told["index"],
        timestamp=told["timestamp"],
        parents=tuple(_hex(parent) for parent in told["parentMessageIds"]),
        applied_root=_hex(told["inclusionMerkleProof"]),
        receipt=_receipt(receipt) if receipt else None,
        public_keys=tuple(key for key, _ in signed),
        next_pow_score=told.get("nextPoWScore") or 0,
        next_pow_score_index=told.get("nextPoWScoreMilestoneIndex") or 0,
    )


def _stardust_draft(told: Json) -> MilestoneDraft:
    options = {option["type"]: option for option in told.get("options") or ()}
    receipt, announced = options.get(0), options.get(1)
    return MilestoneDraft(
        index=told["index"],
        timestamp=told["timestamp"],
        parents=tuple(_hex(parent) for parent in told["parents"]),
        applied_root=_hex(told["appliedMerkleRoot"]),
        inclusion_root=_hex(told["inclusionMerkleRoot"]),
        previous_milestone_id=_hex(told["previousMilestoneId"]),
        metadata=_hex(told.get("metadata") or ""),
        receipt=_receipt(receipt) if receipt else None,
        protocol_parameters=ProtocolParameters(
            announced["targetMilestoneIndex"], announced["protocolVersion"], _hex(announced["params"])
        )
        if announced
        else None,
    )


def _receipt(told: Json) -> Receipt:
    treasury = told["transaction"]
    funds = []
    for fund in told["funds"]:
        owner = _address(fund["address"])
        hashed = _hex(fund["tailTransactionHash"])
        funds.append(MigratedFunds(hashed, owner.kind, owner.value, int(fund["deposit"])))
    return Receipt(
        migrated_at=told["migratedAt"],
        final=bool(told["final"]),
        funds=tuple(funds),
        treasury_input=_hex(treasury["input"]["milestoneId"]),
        treasury_output=int(treasury["output"]["amount"]),
    )
