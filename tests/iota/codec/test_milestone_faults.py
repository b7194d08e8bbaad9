"""Every rule about milestones, broken once: refused, and for that reason."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from permalake.iota.codec.encode import MilestoneDraft, pack_block, pack_milestone, pack_milestone_essence
from permalake.iota.codec.faults import DecodeError, Fault
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.receipts import MigratedFunds, ProtocolParameters, Receipt
from support.block_fault_cases import BLOCK_CASES
from support.iota_specimens import A, B, C, fault_of
from support.output_fault_cases import OUTPUT_CASES

FUNDS = MigratedFunds(bytes(49), 0, A, 1_000_000)
RECEIPT = Receipt(7, True, (FUNDS,), A, 5)
SIGNATURES = ((A, B + C),)


def milestone(protocol, signatures=SIGNATURES, **changes):
    keys = tuple(key for key, _ in signatures) if protocol == "chrysalis" else ()
    draft = replace(
        MilestoneDraft(index=9, timestamp=1, parents=(A,), applied_root=B, public_keys=keys), **changes
    )
    return pack_milestone(pack_milestone_essence(draft, protocol), signatures, protocol)


def altered(protocol, old, new, **changes):
    raw = milestone(protocol, **changes)
    assert raw.count(old) == 1
    return raw.replace(old, new)


def receipt(**changes):
    return replace(RECEIPT, **changes)


def milestone_cases(protocol):
    treasury = struct.pack("<IB", 4, 1) + A + struct.pack("<BQ", 2, 5)
    two = ((B, A + A), (A, B + B))
    return [
        (Fault.MILESTONE_KIND, struct.pack("<I", 5) + milestone(protocol)[4:]),
        (Fault.TRUNCATED, milestone(protocol)[:-1]),
        (Fault.PAYLOAD_LENGTH, milestone(protocol) + b"\0"),
        (Fault.PARENT_COUNT, milestone(protocol, parents=())),
        (Fault.PARENT_ORDER, milestone(protocol, parents=(B, A))),
        (Fault.KEY_ORDER, milestone(protocol, signatures=two)),
        (Fault.KEY_ORDER, milestone(protocol, signatures=SIGNATURES * 2)),
        (Fault.RECEIPT_FUNDS, milestone(protocol, receipt=receipt(funds=()))),
        (
            Fault.RECEIPT_ORDER,
            milestone(
                protocol, receipt=receipt(funds=(replace(FUNDS, tail_transaction_hash=b"1" * 49), FUNDS))
            ),
        ),
        (
            Fault.RECEIPT_DUPLICATE,
            milestone(protocol, receipt=receipt(funds=(FUNDS, replace(FUNDS, address=B)))),
        ),
        (
            Fault.RECEIPT_DEPOSIT,
            milestone(protocol, receipt=receipt(funds=(replace(FUNDS, deposit=999_999),))),
        ),
        (Fault.ADDRESS_KIND, milestone(protocol, receipt=receipt(funds=(replace(FUNDS, address_kind=8),)))),
        (Fault.OUTPUT_AMOUNT, milestone(protocol, receipt=receipt(treasury_output=2**63))),
        (
            Fault.RECEIPT_TREASURY,
            altered(protocol, treasury, struct.pack("<I", 5) + treasury[4:], receipt=RECEIPT),
        ),
        (
            Fault.TREASURY_KIND,
            altered(protocol, treasury, treasury.replace(b"\4\0\0\0\1", b"\4\0\0\0\0"), receipt=RECEIPT),
        ),
        (
            Fault.TREASURY_KIND,
            altered(protocol, treasury, treasury.replace(b"\2\5", b"\3\5"), receipt=RECEIPT),
        ),
        (Fault.FLAG, altered(protocol, b"\7\0\0\0\1", b"\7\0\0\0\2", receipt=RECEIPT)),
    ]


ANNOUNCED = ProtocolParameters(10, 2, b"parameters")
STARDUST_MILESTONES = [
    (Fault.VERSION, altered("stardust", struct.pack("<IIB", 9, 1, 2), struct.pack("<IIB", 9, 1, 3))),
    (Fault.METADATA_LENGTH, milestone("stardust", metadata=bytes(8193))),
    (Fault.SIGNATURE_COUNT, milestone("stardust", signatures=())),
    (Fault.SIGNATURE_KIND, altered("stardust", b"\0" + A + B + C, b"\1" + A + B + C)),
    (
        Fault.OPTION_KIND,
        altered(
            "stardust", struct.pack("<BI", 1, 10), struct.pack("<BI", 2, 10), protocol_parameters=ANNOUNCED
        ),
    ),
    (Fault.PARAMETERS, milestone("stardust", protocol_parameters=replace(ANNOUNCED, target_index=9))),
    (Fault.PARAMETERS, milestone("stardust", protocol_parameters=replace(ANNOUNCED, parameters=bytes(8193)))),
    (
        Fault.OPTION_ORDER,
        altered(
            "stardust",
            b"\1" + struct.pack("<BIBH", 1, 10, 2, 10) + b"parameters",
            b"\2" + (struct.pack("<BIBH", 1, 10, 2, 10) + b"parameters") * 2,
            protocol_parameters=ANNOUNCED,
        ),
    ),
]
CHRYSALIS_MILESTONES = [
    (Fault.KEY_COUNT, milestone("chrysalis", signatures=())),
    (Fault.SIGNATURE_COUNT, milestone("chrysalis", public_keys=(A, B))),
    (Fault.POW_SCORE, milestone("chrysalis", next_pow_score_index=1)),
    (Fault.POW_SCORE, milestone("chrysalis", next_pow_score=1, next_pow_score_index=9)),
    (
        Fault.RECEIPT_KIND,
        altered("chrysalis", struct.pack("<II", 3, 7), struct.pack("<II", 2, 7), receipt=RECEIPT),
    ),
]
MILESTONE_CASES = [("stardust", *case) for case in (*milestone_cases("stardust"), *STARDUST_MILESTONES)] + [
    ("chrysalis", *case) for case in (*milestone_cases("chrysalis"), *CHRYSALIS_MILESTONES)
]


@pytest.mark.parametrize(("protocol", "fault", "payload"), MILESTONE_CASES)
def test_milestones(protocol, fault, payload) -> None:
    assert decode_milestone(milestone(protocol, receipt=RECEIPT), protocol).receipt == RECEIPT
    with pytest.raises(DecodeError) as caught:
        decode_milestone(payload, protocol)
    assert caught.value.fault == fault
    if fault != Fault.MILESTONE_KIND:
        assert fault_of(pack_block([A], payload, protocol), protocol) == fault


@pytest.mark.parametrize("protocol", ["chrysalis", "stardust"])
def test_a_milestone_has_its_blocks_parents(protocol) -> None:
    assert fault_of(pack_block([A], milestone(protocol), protocol), protocol) == Fault.NONE
    assert fault_of(pack_block([A, B], milestone(protocol), protocol), protocol) == Fault.MILESTONE_PARENTS


def test_every_fault_is_among_these_cases() -> None:
    tried = {case[1] for case in (*OUTPUT_CASES, *BLOCK_CASES, *MILESTONE_CASES)}
    assert tried | {Fault.NONE, Fault.MILESTONE_PARENTS} == set(Fault)
