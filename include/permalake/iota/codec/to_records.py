"""Rows of the columns to the records that :mod:`~permalake.iota.codec.encode` writes.

For readers of single blocks; whole days stay in columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from permalake.arrays.cursor import I64, U8
from permalake.iota.codec.blocks import MILESTONE, NO_PAYLOAD, TAGGED_DATA, Blocks
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
from permalake.iota.codec.encode_outputs import Address, NativeToken, Output
from permalake.iota.codec.milestones import Milestone
from permalake.iota.codec.outputs import ALIAS, FOUNDRY, NFT, Addresses, Outputs, Protocol
from permalake.iota.codec.transactions import Parts, Transactions

Payload: TypeAlias = TaggedData | Transaction | Milestone


@dataclass(frozen=True)
class BlockRecord:
    """A block or message; ``network_id`` is the Chrysalis message's."""

    parents: tuple[bytes, ...]
    payload: Payload | None
    nonce: int
    network_id: int


def _cut(data: U8, start: int, length: int) -> bytes:
    return data[start : start + length].tobytes()


def _address(addresses: Addresses, row: int) -> Address | None:
    kind = int(addresses.kind[row])
    return None if kind < 0 else Address(kind, addresses.value[row].tobytes())


def _with_value(addresses: Addresses, values: I64, row: int) -> tuple[Address, int] | None:
    address = _address(addresses, row)
    return (address, int(values[row])) if address else None


def output_record(outputs: Outputs, row: int) -> Output:
    """Return the output of a row."""
    data, kind = outputs.data, int(outputs.kind[row])
    tokens = range(int(outputs.native_token_offset[row]), int(outputs.native_token_offset[row + 1]))
    record = Output(
        kind=kind,
        amount=int(outputs.amount[row]),
        address=_address(outputs.address, row),
        native_tokens=tuple(
            NativeToken(outputs.native_token_id[at].tobytes(), _u256(outputs.native_token_amount[at]))
            for at in tokens
        ),
        storage_return=_with_value(outputs.storage_return, outputs.storage_return_amount, row),
        timelock=int(outputs.timelock_time[row]),
        expiration=_with_value(outputs.expiration_return, outputs.expiration_time, row),
        state_controller=_address(outputs.state_controller, row),
        governor=_address(outputs.governor, row),
        sender=_address(outputs.sender, row),
        issuer=_address(outputs.issuer, row),
        metadata=_cut(data, outputs.metadata_start[row], outputs.metadata_length[row]),
        tag=_cut(data, outputs.tag_start[row], outputs.tag_length[row]),
        immutable_metadata=_cut(
            data, outputs.immutable_metadata_start[row], outputs.immutable_metadata_length[row]
        ),
    )
    if kind in (ALIAS, NFT):
        record = replace(record, chain_id=outputs.chain_id[row, :32].tobytes())
    if kind == ALIAS:
        metadata = _cut(data, outputs.state_metadata_start[row], outputs.state_metadata_length[row])
        index, counter = int(outputs.state_index[row]), int(outputs.foundry_counter[row])
        record = replace(record, state_index=index, state_metadata=metadata, foundry_counter=counter)
    if kind == FOUNDRY:
        supply = (_u256(column[row]) for column in (outputs.minted, outputs.melted, outputs.maximum))
        minted, melted, maximum = supply
        serial = int(outputs.serial_number[row])
        record = replace(record, serial_number=serial, minted=minted, melted=melted, maximum=maximum)
    return record


def _u256(value: U8) -> int:
    return int.from_bytes(value.tobytes(), "little")


def _own(parts: Parts, row: int) -> range:
    """Return the positions of a transaction's elements, which are contiguous."""
    begin, end = parts.transaction.searchsorted([row, row + 1]).tolist()
    return range(begin, end)


def transaction_record(blocks: Blocks, row: int, protocol: Protocol) -> Transaction:
    """Return the ``row``-th of the blocks' transactions."""
    own: Transactions = blocks.transactions
    outputs = _own(own.outputs, row)
    last = outputs[-1]
    behind_outputs = own.outputs.start[last] + own.outputs.length[last] + 4
    has_payload = own.essence_start[row] + own.essence_length[row] > behind_outputs
    return Transaction(
        inputs=tuple(
            (output_id[:32].tobytes(), int.from_bytes(output_id[32:].tobytes(), "little"))
            for output_id in (own.inputs.output_id[at] for at in _own(own.inputs, row))
        ),
        outputs=tuple(output_record(own.output, at) for at in outputs),
        unlocks=tuple(_unlock(blocks, at) for at in _own(own.unlocks, row)),
        payload=tagged_data_record(blocks, int(own.block[row])) if has_payload else None,
        network_id=int(own.network_id[row]) if protocol == "stardust" else 0,
        inputs_commitment=own.inputs_commitment[row].tobytes(),
    )


def _unlock(blocks: Blocks, at: int) -> SignatureUnlock | ReferenceUnlock:
    unlocks = blocks.transactions.unlocks
    if unlocks.kind[at]:
        return ReferenceUnlock(int(unlocks.kind[at]), int(unlocks.reference[at]))
    start = int(unlocks.start[at])
    return SignatureUnlock(_cut(blocks.data, start + 2, 32), _cut(blocks.data, start + 34, 64))


def tagged_data_record(blocks: Blocks, row: int) -> TaggedData:
    """Return the tagged data of a block, or of the transaction in it."""
    tag = _cut(blocks.data, blocks.tag_start[row], blocks.tag_length[row])
    return TaggedData(tag, _cut(blocks.data, blocks.tag_data_start[row], blocks.tag_data_length[row]))


def milestone_draft(milestone: Milestone) -> MilestoneDraft:
    """Return a decoded milestone without its ids, hashes and signatures."""
    return MilestoneDraft(
        index=milestone.index,
        timestamp=milestone.timestamp,
        parents=milestone.parents,
        applied_root=milestone.applied_root,
        inclusion_root=milestone.inclusion_root or bytes(32),
        previous_milestone_id=milestone.previous_milestone_id or bytes(32),
        metadata=milestone.metadata,
        receipt=milestone.receipt,
        protocol_parameters=milestone.protocol_parameters,
        public_keys=tuple(key for key, _ in milestone.signatures) if not milestone.inclusion_root else (),
        next_pow_score=milestone.next_pow_score,
        next_pow_score_index=milestone.next_pow_score_index,
    )


def block_record(blocks: Blocks, row: int, protocol: Protocol) -> BlockRecord:
    """Return the block of a well-formed row."""
    parents = blocks.parent[blocks.parent_offset[row] : blocks.parent_offset[row + 1]]
    return BlockRecord(
        parents=tuple(parent.tobytes() for parent in parents),
        payload=_payload(blocks, row, protocol),
        nonce=int(blocks.nonce[row]),
        network_id=int(blocks.network_id[row]),
    )


def _payload(blocks: Blocks, row: int, protocol: Protocol) -> Payload | None:
    kind = blocks.payload_kind[row]
    if kind == NO_PAYLOAD:
        return None
    if kind == TAGGED_DATA:
        return tagged_data_record(blocks, row)
    if kind == MILESTONE:
        return blocks.milestones[row]
    return transaction_record(blocks, int(blocks.transactions.block.searchsorted(row)), protocol)


def repack(blocks: Blocks, row: int, protocol: Protocol) -> bytes:
    """Return the raw bytes of a well-formed row, written again from its columns."""
    record = block_record(blocks, row, protocol)
    payload = _pack_payload(record.payload, protocol) if record.payload else b""
    return pack_block(record.parents, payload, protocol, nonce=record.nonce, network_id=record.network_id)


def _pack_payload(payload: Payload, protocol: Protocol) -> bytes:
    if isinstance(payload, TaggedData):
        return pack_tagged_data(payload, protocol)
    if isinstance(payload, Milestone):
        essence = pack_milestone_essence(milestone_draft(payload), protocol)
        return pack_milestone(essence, payload.signatures, protocol)
    return pack_transaction(payload, protocol)
