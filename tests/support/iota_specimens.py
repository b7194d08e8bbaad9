"""Small well-formed structures for tests to break, and what a decoder says of them in a batch."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.encode import SignatureUnlock, Transaction, pack_block, pack_transaction
from permalake.iota.codec.encode_outputs import Address, NativeToken, Output
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import ALIAS, BASIC, FOUNDRY, NFT, SINGLE

A, B, C = bytes([1]) * 32, bytes([2]) * 32, bytes([3]) * 32
OWNER, ALIAS_OWNER = Address(0, A), Address(8, A)
SUPPLY = 2_779_530_283_277_761
SIGNED = SignatureUnlock(A, B + C)
BASIC_OUTPUT = Output(kind=BASIC, amount=5, address=OWNER)
ALIAS_OUTPUT = Output(kind=ALIAS, amount=5, state_controller=OWNER, governor=OWNER, chain_id=B)
FOUNDRY_OUTPUT = Output(kind=FOUNDRY, amount=5, address=ALIAS_OWNER, maximum=9, minted=8, melted=2)
NFT_OUTPUT = Output(kind=NFT, amount=5, address=OWNER, chain_id=B)
SINGLE_OUTPUT = Output(kind=SINGLE, amount=5, address=OWNER)
TOKEN = NativeToken(bytes(38), 1)


def tokens(first, count):
    return tuple(NativeToken(at.to_bytes(38, "big"), 1) for at in range(first, first + count))


def transaction(protocol, **changes):
    output = SINGLE_OUTPUT if protocol == "chrysalis" else BASIC_OUTPUT
    return replace(Transaction(inputs=((A, 0),), outputs=(output,), unlocks=(SIGNED,)), **changes)


def packed(protocol, **changes):
    return pack_block([A], pack_transaction(transaction(protocol, **changes), protocol), protocol)


def patched(protocol, old, new, **changes):
    """A transaction whose bytes were changed in one place, the length kept."""
    raw = packed(protocol, **changes)
    assert raw.count(old) == 1
    assert len(old) == len(new)
    return raw.replace(old, new)


def fault_of(raw, protocol):
    """The fault of a block between two fine ones."""
    fine = packed(protocol)
    blocks = decode_blocks(pa.array([fine, raw, fine], pa.binary()), protocol)
    assert blocks.error[[0, 2]].tolist() == [0, 0]
    assert len(blocks.transactions) == (2 if blocks.error[1] or blocks.payload_kind[1] != 1 else 3)
    return Fault(int(blocks.error[1]))
