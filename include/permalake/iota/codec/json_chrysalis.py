"""Records to the JSON of Chrysalis nodes (TIP-13, as iota.go v2 and Hornet 1 write it).

Hex is bare. Amounts are numbers; the network id and the nonce are decimal text. An absent payload or receipt
is null.
"""

from __future__ import annotations

from typing import Any

from permalake.iota.codec.encode import ReferenceUnlock, SignatureUnlock, TaggedData, Transaction
from permalake.iota.codec.encode_outputs import Output
from permalake.iota.codec.milestones import CHRYSALIS_MILESTONE, CHRYSALIS_RECEIPT, Milestone
from permalake.iota.codec.outputs import ED25519, TREASURY
from permalake.iota.codec.receipts import TREASURY_INPUT, TREASURY_TRANSACTION, MigratedFunds, Receipt
from permalake.iota.codec.to_records import BlockRecord, Payload

Json = dict[str, Any]


def message(record: BlockRecord) -> Json:
    """Return the JSON of a message."""
    return {
        "networkId": str(record.network_id),
        "parentMessageIds": [parent.hex() for parent in record.parents],
        "payload": payload(record.payload) if record.payload else None,
        "nonce": str(record.nonce),
    }


def payload(record: Payload) -> Json:
    """Return the JSON of a message's payload."""
    if isinstance(record, TaggedData):
        return _indexation(record)
    return milestone(record) if isinstance(record, Milestone) else _transaction(record)


def milestone(record: Milestone) -> Json:
    """Return the JSON of a milestone payload."""
    return {
        "type": CHRYSALIS_MILESTONE,
        "index": record.index,
        "timestamp": record.timestamp,
        "parentMessageIds": [parent.hex() for parent in record.parents],
        "inclusionMerkleProof": record.applied_root.hex(),
        "nextPoWScore": record.next_pow_score,
        "nextPoWScoreMilestoneIndex": record.next_pow_score_index,
        "publicKeys": [key.hex() for key, _ in record.signatures],
        "receipt": receipt(record.receipt) if record.receipt else None,
        "signatures": [signature.hex() for _, signature in record.signatures],
    }


def receipt(record: Receipt) -> Json:
    """Return the JSON of a receipt payload."""
    return {
        "type": CHRYSALIS_RECEIPT,
        "migratedAt": record.migrated_at,
        "final": record.final,
        "funds": [_funds(fund) for fund in record.funds],
        "transaction": {
            "type": TREASURY_TRANSACTION,
            "input": {"type": TREASURY_INPUT, "milestoneId": record.treasury_input.hex()},
            "output": {"type": TREASURY, "amount": record.treasury_output},
        },
    }


def output(record: Output) -> Json:
    """Return the JSON of an output; a treasury output has no address."""
    owner = {"address": _address(record.address.kind, record.address.value)} if record.address else {}
    return {"type": record.kind, **owner, "amount": record.amount}


def _indexation(record: TaggedData) -> Json:
    return {"type": 2, "index": record.tag.hex(), "data": record.data.hex()}


def _transaction(record: Transaction) -> Json:
    inputs = [
        {"type": 0, "transactionId": source.hex(), "transactionOutputIndex": index}
        for source, index in record.inputs
    ]
    essence = {
        "type": 0,
        "inputs": inputs,
        "outputs": [output(created) for created in record.outputs],
        "payload": _indexation(record.payload) if record.payload else None,
    }
    return {"type": 0, "essence": essence, "unlockBlocks": [_unlock(unlock) for unlock in record.unlocks]}


def _unlock(record: SignatureUnlock | ReferenceUnlock) -> Json:
    if isinstance(record, ReferenceUnlock):
        return {"type": record.kind, "reference": record.index}
    key, signature = record.public_key.hex(), record.signature.hex()
    return {"type": 0, "signature": {"type": ED25519, "publicKey": key, "signature": signature}}


def _funds(record: MigratedFunds) -> Json:
    return {
        "tailTransactionHash": record.tail_transaction_hash.hex(),
        "address": _address(record.address_kind, record.address),
        "deposit": record.deposit,
    }


def _address(kind: int, value: bytes) -> Json:
    return {"type": kind, "address": value.hex()}
