"""Blocks, payloads and milestones of both protocols to bytes: the inverse of the decoders.

Nothing is sorted or checked here, so that tests can make malformed structures too.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from permalake.iota.codec.encode_outputs import Output, pack_output
from permalake.iota.codec.layout import LAYOUTS
from permalake.iota.codec.milestones import CHRYSALIS_MILESTONE, CHRYSALIS_RECEIPT, STARDUST_MILESTONE
from permalake.iota.codec.outputs import TREASURY, Protocol
from permalake.iota.codec.receipts import (
    PARAMETERS_OPTION,
    RECEIPT_OPTION,
    TREASURY_INPUT,
    TREASURY_TRANSACTION,
    ProtocolParameters,
    Receipt,
)


@dataclass(frozen=True)
class TaggedData:
    """Tagged data (Stardust) or an indexation (Chrysalis)."""

    tag: bytes
    data: bytes


@dataclass(frozen=True)
class SignatureUnlock:
    """An Ed25519 signature (64 bytes) and its public key."""

    public_key: bytes
    signature: bytes


@dataclass(frozen=True)
class ReferenceUnlock:
    """A reference to an earlier unlock; ``kind`` 1 reference, 2 alias, 3 NFT."""

    kind: int
    index: int


@dataclass(frozen=True)
class Transaction:
    """A transaction. Inputs are (transaction id, index); Chrysalis has no network id and no commitment."""

    inputs: tuple[tuple[bytes, int], ...]
    outputs: tuple[Output, ...]
    unlocks: tuple[SignatureUnlock | ReferenceUnlock, ...] = ()
    payload: TaggedData | None = None
    network_id: int = 0
    inputs_commitment: bytes = bytes(32)


@dataclass(frozen=True)
class MilestoneDraft:
    """A milestone before it is signed.

    On Chrysalis ``applied_root`` is the only root, and the signers' keys are part of the signed essence.
    """

    index: int
    timestamp: int
    parents: tuple[bytes, ...]
    applied_root: bytes
    inclusion_root: bytes = bytes(32)
    previous_milestone_id: bytes = bytes(32)
    metadata: bytes = b""
    receipt: Receipt | None = None
    protocol_parameters: ProtocolParameters | None = None
    public_keys: tuple[bytes, ...] = ()
    next_pow_score: int = 0
    next_pow_score_index: int = 0


def pack_block(
    parents: Sequence[bytes], payload: bytes, protocol: Protocol, *, nonce: int = 0, network_id: int = 0
) -> bytes:
    """Return a block around a packed payload (empty: none). ``network_id`` is the Chrysalis message's."""
    head = b"\x02" if LAYOUTS[protocol].stardust else struct.pack("<Q", network_id)
    return head + _pack_parents(parents) + _sized(payload) + struct.pack("<Q", nonce)


def pack_tagged_data(payload: TaggedData, protocol: Protocol) -> bytes:
    """Return tagged data with its payload type."""
    layout = LAYOUTS[protocol]
    length = len(payload.tag).to_bytes(layout.tag_length_bytes, "little")
    return struct.pack("<I", layout.tagged_data) + length + payload.tag + _sized(payload.data)


def pack_essence(transaction: Transaction, protocol: Protocol) -> bytes:
    """Return the essence with its type; its BLAKE2b-256 hash is what the inputs' owners sign."""
    layout = LAYOUTS[protocol]
    packed = bytes([layout.essence])
    if layout.stardust:
        packed += struct.pack("<Q", transaction.network_id)
    packed += struct.pack("<H", len(transaction.inputs))
    packed += b"".join(b"\0" + source + struct.pack("<H", index) for source, index in transaction.inputs)
    if layout.stardust:
        packed += transaction.inputs_commitment
    packed += struct.pack("<H", len(transaction.outputs))
    packed += b"".join(pack_output(output) for output in transaction.outputs)
    return packed + _sized(pack_tagged_data(transaction.payload, protocol) if transaction.payload else b"")


def pack_transaction(transaction: Transaction, protocol: Protocol) -> bytes:
    """Return the transaction with its payload type; its id is the BLAKE2b-256 hash of these bytes."""
    unlocks = b"".join(pack_unlock(unlock) for unlock in transaction.unlocks)
    count = struct.pack("<H", len(transaction.unlocks))
    kind = struct.pack("<I", LAYOUTS[protocol].transaction)
    return kind + pack_essence(transaction, protocol) + count + unlocks


def pack_unlock(unlock: SignatureUnlock | ReferenceUnlock) -> bytes:
    """Return the bytes of an unlock."""
    if isinstance(unlock, SignatureUnlock):
        return b"\0\0" + unlock.public_key + unlock.signature
    return struct.pack("<BH", unlock.kind, unlock.index)


def pack_milestone_essence(draft: MilestoneDraft, protocol: Protocol) -> bytes:
    """Return the part of a milestone whose BLAKE2b-256 hash is signed."""
    if protocol == "chrysalis":
        packed = struct.pack("<IQ", draft.index, draft.timestamp) + _pack_parents(draft.parents)
        packed += draft.applied_root + struct.pack("<II", draft.next_pow_score, draft.next_pow_score_index)
        packed += bytes([len(draft.public_keys)]) + b"".join(draft.public_keys)
        receipt = struct.pack("<I", CHRYSALIS_RECEIPT) + pack_receipt(draft.receipt) if draft.receipt else b""
        return packed + _sized(receipt)
    packed = struct.pack("<IIB", draft.index, draft.timestamp, 2) + draft.previous_milestone_id
    packed += _pack_parents(draft.parents) + draft.inclusion_root + draft.applied_root
    packed += struct.pack("<H", len(draft.metadata)) + draft.metadata
    options = []
    if draft.receipt:
        options.append(bytes([RECEIPT_OPTION]) + pack_receipt(draft.receipt))
    if draft.protocol_parameters:
        announced = draft.protocol_parameters
        head = (PARAMETERS_OPTION, announced.target_index, announced.version, len(announced.parameters))
        options.append(struct.pack("<BIBH", *head) + announced.parameters)
    return packed + bytes([len(options)]) + b"".join(options)


def pack_milestone(essence: bytes, signatures: Sequence[tuple[bytes, bytes]], protocol: Protocol) -> bytes:
    """Return the milestone payload with its type, from essence and (public key, signature) pairs."""
    if protocol == "chrysalis":
        kind, signed = CHRYSALIS_MILESTONE, b"".join(signature for _, signature in signatures)
    else:
        kind, signed = STARDUST_MILESTONE, b"".join(b"\0" + key + signature for key, signature in signatures)
    return struct.pack("<I", kind) + essence + bytes([len(signatures)]) + signed


def pack_receipt(receipt: Receipt) -> bytes:
    """Return a receipt without its type."""
    funds = b"".join(
        entry.tail_transaction_hash
        + bytes([entry.address_kind])
        + entry.address
        + struct.pack("<Q", entry.deposit)
        for entry in receipt.funds
    )
    treasury = struct.pack("<IB", TREASURY_TRANSACTION, TREASURY_INPUT) + receipt.treasury_input
    treasury += struct.pack("<BQ", TREASURY, receipt.treasury_output)
    return (
        struct.pack("<IBH", receipt.migrated_at, receipt.final, len(receipt.funds)) + funds + _sized(treasury)
    )


def _pack_parents(parents: Sequence[bytes]) -> bytes:
    return bytes([len(parents)]) + b"".join(parents)


def _sized(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload
