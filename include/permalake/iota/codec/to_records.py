"""One row of the columns back as the record that :mod:`~permalake.iota.codec.encode` writes.

For readers of single blocks; whole days stay in columns.
"""

from __future__ import annotations

from dataclasses import replace

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


def _cut(data: U8, start: int, length: int) -> bytes:
    return data[start : start + length].tobytes()


def _address(addresses: Addresses, row: int) -> Address | None:
    kind = int(addresses.kind[row])
    return None if kind < 0 else Address(kind, addresses.value[row].tobytes())


def _with_value(addresses: Addresses, values: I64, row: int) -> tuple[Address, int] | None:
    address = _address(addresses, row)
    return (address, int(values[row])) if address else None


def output_record(outputs: Outputs, row: int) -> Output:
    """The output of a row."""
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
    """Positions of a transaction's elements; they lie together."""
    begin, end = parts.transaction.searchsorted([row, row + 1]).tolist()
    return range(begin, end)


def transaction_record(blocks: Blocks, row: int, protocol: Protocol) -> Transaction:
    """The ``row``-th of the blocks' transactions."""
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
    """The tagged data of a block, or of the transaction in it."""
    tag = _cut(blocks.data, blocks.tag_start[row], blocks.tag_length[row])
    return TaggedData(tag, _cut(blocks.data, blocks.tag_data_start[row], blocks.tag_data_length[row]))


def milestone_draft(milestone: Milestone) -> MilestoneDraft:
    """What a decoded milestone says."""
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


def repack(blocks: Blocks, row: int, protocol: Protocol) -> bytes:
    """The raw bytes of a well-formed row, written anew from its columns."""
    kind = blocks.payload_kind[row]
    if kind == NO_PAYLOAD:
        payload = b""
    elif kind == TAGGED_DATA:
        payload = pack_tagged_data(tagged_data_record(blocks, row), protocol)
    elif kind == MILESTONE:
        milestone = blocks.milestones[row]
        essence = pack_milestone_essence(milestone_draft(milestone), protocol)
        payload = pack_milestone(essence, milestone.signatures, protocol)
    else:
        at = int(blocks.transactions.block.searchsorted(row))
        payload = pack_transaction(transaction_record(blocks, at, protocol), protocol)
    parents = blocks.parent[blocks.parent_offset[row] : blocks.parent_offset[row + 1]]
    return pack_block(
        [parent.tobytes() for parent in parents],
        payload,
        protocol,
        nonce=int(blocks.nonce[row]),
        network_id=int(blocks.network_id[row]),
    )
