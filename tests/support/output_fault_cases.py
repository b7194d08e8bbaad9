"""Every rule about outputs, broken once: refused for that reason, alone and inside a block."""

from __future__ import annotations

import struct
from dataclasses import replace

from permalake.iota.codec.encode_outputs import Address, pack_output
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import DUST_ALLOWANCE, SINGLE
from support.iota_specimens import (
    ALIAS_OUTPUT,
    ALIAS_OWNER,
    BASIC_OUTPUT,
    FOUNDRY_OUTPUT,
    NFT_OUTPUT,
    OWNER,
    SINGLE_OUTPUT,
    SUPPLY,
    TOKEN,
    A,
    B,
    tokens,
)


def swapped(output, first, second):
    """The packed output with two adjacent elements in the wrong order."""
    return pack_output(output).replace(first + second, second + first)


def zeroed(output, value):
    return pack_output(output).replace(value, bytes(len(value)))


MARK = 0xA1B2C3D4
MARKED = struct.pack("<I", MARK)

# Outputs that break a rule, of themselves.
STARDUST_OUTPUTS = [
    (Fault.OUTPUT_KIND, replace(SINGLE_OUTPUT, kind=SINGLE)),
    (Fault.OUTPUT_KIND, replace(BASIC_OUTPUT, kind=7)),
    (Fault.OUTPUT_AMOUNT, replace(BASIC_OUTPUT, amount=0)),
    (Fault.OUTPUT_AMOUNT, replace(BASIC_OUTPUT, amount=2**63)),
    (Fault.ADDRESS_KIND, replace(BASIC_OUTPUT, address=Address(1, A))),
    (Fault.ADDRESS_KIND, replace(FOUNDRY_OUTPUT, address=OWNER)),
    (Fault.NATIVE_TOKEN_COUNT, replace(BASIC_OUTPUT, native_tokens=tokens(0, 65))),
    (Fault.NATIVE_TOKEN_ORDER, replace(BASIC_OUTPUT, native_tokens=tokens(0, 2)[::-1])),
    (Fault.NATIVE_TOKEN_ORDER, replace(NFT_OUTPUT, native_tokens=(TOKEN, TOKEN))),
    (Fault.NATIVE_TOKEN_AMOUNT, replace(BASIC_OUTPUT, native_tokens=(replace(TOKEN, amount=0),))),
    (
        Fault.CONDITION_COUNT,
        replace(BASIC_OUTPUT, storage_return=(OWNER, 1), timelock=1, expiration=(OWNER, 1), governor=OWNER),
    ),
    (Fault.CONDITION_KIND, replace(BASIC_OUTPUT, governor=OWNER)),
    (Fault.CONDITION_KIND, replace(ALIAS_OUTPUT, timelock=1)),
    (Fault.CONDITION_ORDER, swapped(ALIAS_OUTPUT, b"\x04\x00" + A, b"\x05\x00" + A)),
    (Fault.CONDITION_MISSING, replace(BASIC_OUTPUT, address=None)),
    (Fault.CONDITION_MISSING, replace(ALIAS_OUTPUT, governor=None)),
    (Fault.CONDITION_MISSING, replace(FOUNDRY_OUTPUT, address=None)),
    (Fault.CONDITION_MISSING, replace(NFT_OUTPUT, address=None, timelock=1)),
    (Fault.CONDITION_TIME, zeroed(replace(BASIC_OUTPUT, timelock=MARK), MARKED)),
    (Fault.CONDITION_TIME, zeroed(replace(BASIC_OUTPUT, expiration=(OWNER, MARK)), MARKED)),
    (Fault.STORAGE_RETURN, replace(BASIC_OUTPUT, storage_return=(OWNER, 0))),
    (Fault.STORAGE_RETURN, replace(BASIC_OUTPUT, storage_return=(OWNER, 6))),
    (Fault.FEATURE_COUNT, pack_output(BASIC_OUTPUT)[:-1] + b"\x05"),
    (Fault.FEATURE_KIND, replace(FOUNDRY_OUTPUT, sender=OWNER)),
    (Fault.FEATURE_KIND, replace(ALIAS_OUTPUT, tag=b"x")),
    (Fault.FEATURE_ORDER, swapped(replace(BASIC_OUTPUT, metadata=b"m", tag=b"t"), b"\2\1\0m", b"\3\1t")),
    (Fault.METADATA_LENGTH, replace(BASIC_OUTPUT, metadata=bytes(8193))),
    (Fault.METADATA_LENGTH, replace(NFT_OUTPUT, immutable_metadata=bytes(8193))),
    (Fault.METADATA_LENGTH, replace(ALIAS_OUTPUT, state_metadata=bytes(8193))),
    (Fault.TAG_LENGTH, replace(BASIC_OUTPUT, tag=bytes(65))),
    (Fault.ALIAS_STATE, replace(ALIAS_OUTPUT, chain_id=bytes(32), state_index=1)),
    (Fault.ALIAS_STATE, replace(ALIAS_OUTPUT, chain_id=bytes(32), foundry_counter=1)),
    (Fault.SELF_OWNED, replace(ALIAS_OUTPUT, state_controller=Address(8, B))),
    (Fault.SELF_OWNED, replace(ALIAS_OUTPUT, governor=Address(8, B))),
    (Fault.SELF_OWNED, replace(NFT_OUTPUT, address=Address(16, B))),
    (
        Fault.TOKEN_SCHEME,
        pack_output(replace(FOUNDRY_OUTPUT, serial_number=MARK)).replace(MARKED + b"\0", MARKED + b"\1"),
    ),
    (Fault.TOKEN_SUPPLY, replace(FOUNDRY_OUTPUT, minted=1, melted=2)),
    (Fault.TOKEN_SUPPLY, replace(FOUNDRY_OUTPUT, minted=2**255 + 8, melted=2**255 - 2)),
    (Fault.TOKEN_SUPPLY, replace(FOUNDRY_OUTPUT, minted=0, melted=0, maximum=0)),
]
CHRYSALIS_OUTPUTS = [
    (Fault.OUTPUT_KIND, replace(SINGLE_OUTPUT, kind=3)),
    (Fault.ADDRESS_KIND, replace(SINGLE_OUTPUT, address=ALIAS_OWNER)),
    (Fault.OUTPUT_AMOUNT, replace(SINGLE_OUTPUT, amount=0)),
    (Fault.OUTPUT_AMOUNT, replace(SINGLE_OUTPUT, amount=SUPPLY + 1)),
    (Fault.OUTPUT_AMOUNT, replace(SINGLE_OUTPUT, kind=DUST_ALLOWANCE, amount=999_999)),
]
OUTPUT_CASES = [("stardust", *case) for case in STARDUST_OUTPUTS] + [
    ("chrysalis", *case) for case in CHRYSALIS_OUTPUTS
]
