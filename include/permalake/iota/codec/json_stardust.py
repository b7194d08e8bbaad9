"""Records to the JSON of Stardust nodes (TIP-25, as iota.go v3 and Hornet 2 write it).

Hex has the prefix ``0x``. A u64 is decimal text, a u256 hex without leading zeros. Empty bytes, empty lists
and absent payloads are left out. The deposit of migrated funds is a number, although iota.go writes text:
iota-sdk reads numbers only, and no Stardust network had receipts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from permalake.iota.codec.encode import ReferenceUnlock, SignatureUnlock, TaggedData, Transaction
from permalake.iota.codec.encode_outputs import Address, Output
from permalake.iota.codec.features import ISSUER, METADATA, SENDER, TAG
from permalake.iota.codec.milestones import STARDUST_MILESTONE, Milestone
from permalake.iota.codec.outputs import ALIAS, ALIAS_ADDRESS, ED25519, FOUNDRY, NFT, NFT_ADDRESS, TREASURY
from permalake.iota.codec.receipts import (
    PARAMETERS_OPTION,
    RECEIPT_OPTION,
    TREASURY_INPUT,
    TREASURY_TRANSACTION,
    MigratedFunds,
    ProtocolParameters,
    Receipt,
)
from permalake.iota.codec.to_records import BlockRecord, Payload
from permalake.iota.codec.unlock_conditions import (
    ADDRESS,
    EXPIRATION,
    GOVERNOR,
    IMMUTABLE_ALIAS,
    STATE_CONTROLLER,
    STORAGE_RETURN,
    TIMELOCK,
)

Json = dict[str, Any]
ADDRESS_NAMES = {ED25519: "pubKeyHash", ALIAS_ADDRESS: "aliasId", NFT_ADDRESS: "nftId"}


def block(record: BlockRecord) -> Json:
    """Return the JSON of a block."""
    return {
        "protocolVersion": 2,
        "parents": [_hex(parent) for parent in record.parents],
        **_present("payload", payload(record.payload) if record.payload else None),
        "nonce": str(record.nonce),
    }


def payload(record: Payload) -> Json:
    """Return the JSON of a block's payload."""
    if isinstance(record, TaggedData):
        return _tagged_data(record)
    return milestone(record) if isinstance(record, Milestone) else _transaction(record)


def milestone(record: Milestone) -> Json:
    """Return the JSON of a milestone payload."""
    options = []
    if record.receipt:
        options.append(receipt(record.receipt))
    if record.protocol_parameters:
        options.append(_parameters(record.protocol_parameters))
    return {
        "type": STARDUST_MILESTONE,
        "index": record.index,
        "timestamp": record.timestamp,
        "protocolVersion": record.protocol_version,
        "previousMilestoneId": _hex(record.previous_milestone_id or b""),
        "parents": [_hex(parent) for parent in record.parents],
        "inclusionMerkleRoot": _hex(record.inclusion_root or b""),
        "appliedMerkleRoot": _hex(record.applied_root),
        **_bytes("metadata", record.metadata),
        **_present("options", options),
        "signatures": [_signature(*signed) for signed in record.signatures],
    }


def receipt(record: Receipt) -> Json:
    """Return the JSON of a receipt, as a milestone option."""
    return {
        "type": RECEIPT_OPTION,
        "migratedAt": record.migrated_at,
        "final": record.final,
        "funds": [_funds(fund) for fund in record.funds],
        "transaction": {
            "type": TREASURY_TRANSACTION,
            "input": {"type": TREASURY_INPUT, "milestoneId": _hex(record.treasury_input)},
            "output": {"type": TREASURY, "amount": str(record.treasury_output)},
        },
    }


def output(record: Output) -> Json:
    """Return the JSON of an output of any type."""
    if record.kind == TREASURY:
        return {"type": record.kind, "amount": str(record.amount)}
    tokens = [{"id": _hex(token.token_id), "amount": hex(token.amount)} for token in record.native_tokens]
    return {
        "type": record.kind,
        "amount": str(record.amount),
        **_present("nativeTokens", tokens),
        **_own_fields(record),
        "unlockConditions": list(_unlock_conditions(record)),
        **_present("features", list(_features(record))),
        **_present("immutableFeatures", list(_immutable_features(record))),
    }


def _hex(value: bytes) -> str:
    return f"0x{value.hex()}"


def _present(name: str, value: Json | Sequence[Json] | None) -> Json:
    return {name: value} if value else {}


def _bytes(name: str, value: bytes) -> Json:
    return {name: _hex(value)} if value else {}


def _tagged_data(record: TaggedData) -> Json:
    return {"type": 5, **_bytes("tag", record.tag), **_bytes("data", record.data)}


def _transaction(record: Transaction) -> Json:
    inputs = [
        {"type": 0, "transactionId": _hex(source), "transactionOutputIndex": index}
        for source, index in record.inputs
    ]
    essence = {
        "type": 1,
        "networkId": str(record.network_id),
        "inputs": inputs,
        "inputsCommitment": _hex(record.inputs_commitment),
        "outputs": [output(created) for created in record.outputs],
        **_present("payload", _tagged_data(record.payload) if record.payload else None),
    }
    return {"type": 6, "essence": essence, "unlocks": [_unlock(unlock) for unlock in record.unlocks]}


def _unlock(record: SignatureUnlock | ReferenceUnlock) -> Json:
    if isinstance(record, ReferenceUnlock):
        return {"type": record.kind, "reference": record.index}
    return {"type": 0, "signature": _signature(record.public_key, record.signature)}


def _signature(public_key: bytes, signature: bytes) -> Json:
    return {"type": 0, "publicKey": _hex(public_key), "signature": _hex(signature)}


def _parameters(record: ProtocolParameters) -> Json:
    return {
        "type": PARAMETERS_OPTION,
        "targetMilestoneIndex": record.target_index,
        "protocolVersion": record.version,
        "params": _hex(record.parameters),
    }


def _funds(record: MigratedFunds) -> Json:
    return {
        "tailTransactionHash": _hex(record.tail_transaction_hash),
        "address": _address(Address(record.address_kind, record.address)),
        "deposit": record.deposit,
    }


def _address(record: Address) -> Json:
    return {"type": record.kind, ADDRESS_NAMES[record.kind]: _hex(record.value)}


def _own_fields(record: Output) -> Json:
    """Return the fields that only outputs of this type have."""
    if record.kind == ALIAS:
        return {
            "aliasId": _hex(record.chain_id),
            "stateIndex": record.state_index,
            **_bytes("stateMetadata", record.state_metadata),
            "foundryCounter": record.foundry_counter,
        }
    if record.kind == FOUNDRY:
        scheme = {
            "type": 0,
            "mintedTokens": hex(record.minted),
            "meltedTokens": hex(record.melted),
            "maximumSupply": hex(record.maximum),
        }
        return {"serialNumber": record.serial_number, "tokenScheme": scheme}
    return {"nftId": _hex(record.chain_id)} if record.kind == NFT else {}


def _unlock_conditions(record: Output) -> Iterable[Json]:
    if record.address:
        kind = IMMUTABLE_ALIAS if record.kind == FOUNDRY else ADDRESS
        yield {"type": kind, "address": _address(record.address)}
    if record.storage_return:
        back, amount = record.storage_return
        yield {"type": STORAGE_RETURN, "returnAddress": _address(back), "amount": str(amount)}
    if record.timelock:
        yield {"type": TIMELOCK, "unixTime": record.timelock}
    if record.expiration:
        back, time = record.expiration
        yield {"type": EXPIRATION, "returnAddress": _address(back), "unixTime": time}
    if record.state_controller:
        yield {"type": STATE_CONTROLLER, "address": _address(record.state_controller)}
    if record.governor:
        yield {"type": GOVERNOR, "address": _address(record.governor)}


def _features(record: Output) -> Iterable[Json]:
    if record.sender:
        yield {"type": SENDER, "address": _address(record.sender)}
    if record.metadata:
        yield {"type": METADATA, "data": _hex(record.metadata)}
    if record.tag:
        yield {"type": TAG, "tag": _hex(record.tag)}


def _immutable_features(record: Output) -> Iterable[Json]:
    if record.issuer:
        yield {"type": ISSUER, "address": _address(record.issuer)}
    if record.immutable_metadata:
        yield {"type": METADATA, "data": _hex(record.immutable_metadata)}
