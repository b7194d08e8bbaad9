"""The part of a synthetic tangle that is made in sequence, before its epochs are made in parallel.

Every milestone's cone holds an *anchor*, a message that refers only to the anchor before: its id is known
without making the cones between. Every epoch begins with a transaction out of one *bank* output, which funds
the epoch and leaves the rest to the next one. So an epoch needs two messages and an output of its
predecessor, and the whole ledger goes back to one genesis. Where all epochs have one ledger, only the first
one is funded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from permalake.iota.codec.encode import (
    SignatureUnlock,
    TaggedData,
    Transaction,
    pack_block,
    pack_essence,
    pack_tagged_data,
    pack_transaction,
)
from permalake.iota.codec.encode_outputs import Address, Output, pack_output
from permalake.iota.codec.outputs import BASIC, ED25519, SINGLE
from permalake_simulate.iota.tangle_world import Epoch, IotaWorld
from permalake_simulate.iota.wallets import BANK, Wallets
from permalake_simulate.seeds import digest

ANCHOR_TAG = b"SYNTHETIC ANCHOR"
_MOST_FUNDED = 100


def hashed(data: bytes) -> bytes:
    """Return the BLAKE2b-256 hash."""
    return blake2b(data, digest_size=32).digest()


@dataclass(frozen=True)
class Lead:
    """What leads into an epoch.

    That is the anchor before its first milestone, and the bank's output: its id, its amount, and the message,
    index and time that booked it.
    """

    anchor: bytes
    bank_id: bytes
    bank_amount: int
    bank_block: bytes
    bank_index: int
    bank_time: int


def anchor(world: IotaWorld, milestone: int, before: bytes) -> bytes:
    """Return the anchor message of a milestone."""
    payload = TaggedData(ANCHOR_TAG, f"milestone {world.index(milestone)}".encode())
    packed = pack_tagged_data(payload, world.protocol)
    return pack_block([before], packed, world.protocol, network_id=message_network(world))


def message_network(world: IotaWorld) -> int:
    """Return the network id that a message itself carries (Chrysalis only)."""
    return 0 if world.protocol == "stardust" else world.network_id


def funding(world: IotaWorld, epoch: Epoch, lead: Lead) -> tuple[bytes, tuple[Output, ...]]:
    """Return the payload of the transaction that funds an epoch, and its outputs, one of them the bank's."""
    messages = world.messages if world.one_ledger else sum(epoch.sizes)
    expected = messages * world.transaction_share
    count = max(4, min(_MOST_FUNDED, int(expected / 4), world.wallets - 1))
    wallets = Wallets(world.seed, world.wallets)
    kind = BASIC if world.protocol == "stardust" else SINGLE
    share = world.funds.allotment // count
    outputs = [_plain(kind, lead.bank_amount - count * share, wallets[BANK].address)]
    outputs += [_plain(kind, share, wallets[number].address) for number in range(count)]
    if kind == SINGLE:
        outputs.sort(key=pack_output)
    spent = pack_output(_plain(kind, lead.bank_amount, wallets[BANK].address))
    transaction = Transaction(
        inputs=((lead.bank_id[:32], int.from_bytes(lead.bank_id[32:], "little")),),
        outputs=tuple(outputs),
        network_id=world.network_id,
        inputs_commitment=hashed(hashed(spent)),
    )
    signature = wallets[BANK].sign(hashed(pack_essence(transaction, world.protocol)))
    signed = Transaction(
        transaction.inputs,
        transaction.outputs,
        (SignatureUnlock(wallets[BANK].public, signature),),
        None,
        transaction.network_id,
        transaction.inputs_commitment,
    )
    return pack_transaction(signed, world.protocol), transaction.outputs


def bank_position(world: IotaWorld, outputs: tuple[Output, ...]) -> int:
    """Return which of a funding transaction's outputs is the bank's."""
    bank = Wallets(world.seed, world.wallets)[BANK].address
    return next(at for at, output in enumerate(outputs) if output.address and output.address.value == bank)


def genesis(world: IotaWorld) -> Lead:
    """Return what leads into the first epoch: an output from before, from which all others come."""
    return Lead(
        digest(world.seed, "anchor"),
        digest(world.seed, "genesis") + bytes(2),
        world.funds.bank,
        bytes(32),
        0,
        0,
    )


def leads(world: IotaWorld, first: Lead) -> Iterator[tuple[Epoch, Lead]]:
    """Yield the epochs in order, each with what leads into it."""
    lead, before = first, first.anchor
    for epoch in world.epochs():
        yield epoch, lead
        ids = []
        for at in range(len(epoch.sizes)):
            before = hashed(anchor(world, epoch.first + at, before))
            ids.append(before)
        if world.one_ledger:
            lead = replace(lead, anchor=before)
            continue
        payload, outputs = funding(world, epoch, lead)
        at = bank_position(world, outputs)
        lead = Lead(
            before,
            hashed(payload) + at.to_bytes(2, "little"),
            outputs[at].amount,
            hashed(funding_block(world, payload, ids[0])),
            world.index(epoch.first),
            epoch.times[0],
        )


def funding_block(world: IotaWorld, payload: bytes, anchored: bytes) -> bytes:
    """Return the message of a funding transaction; it refers to its milestone's anchor only."""
    return pack_block([anchored], payload, world.protocol, network_id=message_network(world))


def _plain(kind: int, amount: int, address: bytes) -> Output:
    return Output(kind, amount, Address(ED25519, address))
