"""Every rule about blocks and transactions, broken once: refused, and for that reason."""

from __future__ import annotations

import struct
from dataclasses import replace

from permalake.iota.codec.encode import (
    ReferenceUnlock,
    SignatureUnlock,
    TaggedData,
    pack_block,
    pack_tagged_data,
    pack_transaction,
)
from permalake.iota.codec.encode_outputs import Address, Output
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import TREASURY
from support.iota_specimens import (
    BASIC_OUTPUT,
    FOUNDRY_OUTPUT,
    NFT_OUTPUT,
    SIGNED,
    SINGLE_OUTPUT,
    SUPPLY,
    A,
    B,
    C,
    packed,
    patched,
    tokens,
    transaction,
)


def tagged(protocol, tag=b"tag", data=b"data"):
    return pack_tagged_data(TaggedData(tag, data), protocol)


def block_cases(protocol):
    most = 127 if protocol == "chrysalis" else 128
    many = tuple((A, at) for at in range(most))
    fine, kind = transaction(protocol).outputs[0], struct.pack("<I", 9)
    inner = TaggedData(b"inner", b"xy")
    inner_type = tagged(protocol, b"inner", b"xy")
    two = ((A, 0), (B, 0))
    return [
        (Fault.TRUNCATED, packed(protocol)[:-1]),
        (Fault.TRUNCATED, b""),
        (Fault.TRAILING, packed(protocol) + b"\0"),
        (Fault.BLOCK_LENGTH, pack_block([A], tagged(protocol, data=bytes(32768)), protocol)),
        (Fault.PARENT_COUNT, pack_block([], b"", protocol)),
        (Fault.PARENT_COUNT, pack_block([bytes([at]) * 32 for at in range(9)], b"", protocol)),
        (Fault.PARENT_ORDER, pack_block([B, A], b"", protocol)),
        (Fault.PARENT_ORDER, pack_block([A, A], b"", protocol)),
        (Fault.PAYLOAD_KIND, pack_block([A], kind + b"12345", protocol)),
        (
            Fault.PAYLOAD_KIND,
            pack_block([A], struct.pack("<IB", 4, 1) + A + struct.pack("<BQ", 2, 1), protocol),
        ),
        (Fault.PAYLOAD_LENGTH, pack_block([A], tagged(protocol) + b"\0", protocol)),
        (
            Fault.PAYLOAD_LENGTH,
            pack_block([A], pack_transaction(transaction(protocol), protocol) + b"\0", protocol),
        ),
        (Fault.TRUNCATED, pack_block([A], tagged(protocol)[:-1], protocol)),
        (Fault.TAG_LENGTH, pack_block([A], tagged(protocol, tag=bytes(65)), protocol)),
        (Fault.INPUT_COUNT, packed(protocol, inputs=())),
        (Fault.INPUT_COUNT, packed(protocol, inputs=(*many, (B, 0)))),
        (
            Fault.INPUT_KIND,
            patched(
                protocol,
                b"\0" + C + b"\0\0",
                b"\1" + C + b"\0\0",
                inputs=((C, 0),),
                unlocks=(SignatureUnlock(A, A + B),),
            ),
        ),
        (Fault.INPUT_INDEX, packed(protocol, inputs=((A, most),))),
        (Fault.INPUT_DUPLICATE, packed(protocol, inputs=((A, 1), (B, 0), (A, 1)))),
        (Fault.OUTPUT_COUNT, packed(protocol, outputs=())),
        (Fault.OUTPUT_COUNT, packed(protocol, outputs=(fine,) * (most + 1))),
        (Fault.OUTPUT_KIND, packed(protocol, outputs=(Output(kind=TREASURY, amount=5, address=None),))),
        (Fault.ESSENCE_PAYLOAD, patched(protocol, inner_type, kind + inner_type[4:], payload=inner)),
        (Fault.PAYLOAD_LENGTH, patched(protocol, b"\2\0\0\0xy", b"\1\0\0\0xy", payload=inner)),
        (Fault.UNLOCK_COUNT, packed(protocol, inputs=two)),
        (Fault.UNLOCK_COUNT, packed(protocol, unlocks=(SIGNED, ReferenceUnlock(1, 0)))),
        (Fault.UNLOCK_KIND, packed(protocol, inputs=two, unlocks=(SIGNED, ReferenceUnlock(4, 0)))),
        (Fault.UNLOCK_REFERENCE, packed(protocol, unlocks=(ReferenceUnlock(1, 0),))),
        (Fault.UNLOCK_REFERENCE, packed(protocol, inputs=two, unlocks=(SIGNED, ReferenceUnlock(1, 1)))),
        (
            Fault.UNLOCK_REFERENCE,
            packed(
                protocol,
                inputs=((A, 0), (A, 1), (B, 0)),
                unlocks=(SIGNED, ReferenceUnlock(1, 0), ReferenceUnlock(1, 1)),
            ),
        ),
        (Fault.UNLOCK_DUPLICATE, packed(protocol, inputs=two, unlocks=(SIGNED, SIGNED))),
        (Fault.SIGNATURE_KIND, patched(protocol, b"\0\0" + A + B + C, b"\0\1" + A + B + C)),
    ]


STARDUST_BLOCKS = [
    (Fault.VERSION, b"\x03" + packed("stardust")[1:]),
    (Fault.ESSENCE_KIND, patched("stardust", b"\x06\0\0\0\x01", b"\x06\0\0\0\x02")),
    (Fault.OUTPUT_SUM, packed("stardust", outputs=(replace(BASIC_OUTPUT, amount=2**62),) * 2)),
    (Fault.OUTPUT_SUM, packed("stardust", outputs=(replace(BASIC_OUTPUT, amount=2**63 - 1),) * 8)),
    (
        Fault.NATIVE_TOKEN_COUNT,
        packed(
            "stardust",
            outputs=tuple(replace(BASIC_OUTPUT, native_tokens=tokens(at, 33)) for at in (0, 33)),
        ),
    ),
    (Fault.CHAIN_DUPLICATE, packed("stardust", outputs=(NFT_OUTPUT, BASIC_OUTPUT, NFT_OUTPUT))),
    (Fault.CHAIN_DUPLICATE, packed("stardust", outputs=(FOUNDRY_OUTPUT, FOUNDRY_OUTPUT))),
    (
        Fault.UNLOCK_REFERENCE,
        packed("stardust", inputs=((A, 0), (B, 0)), unlocks=(SIGNED, ReferenceUnlock(2, 5))),
    ),
]
CHRYSALIS_BLOCKS = [
    (Fault.TAG_LENGTH, pack_block([A], tagged("chrysalis", tag=b""), "chrysalis")),
    (Fault.ESSENCE_KIND, patched("chrysalis", b"\0\x01\0\0" + A, b"\1\x01\0\0" + A)),
    (Fault.INPUT_ORDER, packed("chrysalis", inputs=((B, 0), (A, 0)))),
    (
        Fault.OUTPUT_ORDER,
        packed("chrysalis", outputs=(replace(SINGLE_OUTPUT, address=Address(0, B)), SINGLE_OUTPUT)),
    ),
    (Fault.OUTPUT_DUPLICATE, packed("chrysalis", outputs=(SINGLE_OUTPUT, replace(SINGLE_OUTPUT, amount=6)))),
    (
        Fault.OUTPUT_SUM,
        packed(
            "chrysalis",
            outputs=tuple(replace(SINGLE_OUTPUT, amount=SUPPLY, address=Address(0, own)) for own in (A, B)),
        ),
    ),
    (
        Fault.UNLOCK_KIND,
        packed("chrysalis", inputs=((A, 0), (B, 0)), unlocks=(SIGNED, ReferenceUnlock(2, 0))),
    ),
]
BLOCK_CASES = [("stardust", *case) for case in (*block_cases("stardust"), *STARDUST_BLOCKS)] + [
    ("chrysalis", *case) for case in (*block_cases("chrysalis"), *CHRYSALIS_BLOCKS)
]
