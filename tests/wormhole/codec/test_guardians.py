from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from permalake.wormhole.codec.guardians import REASONS, quorum, recover_address, verify
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference
from permalake_simulate.wormhole.encode_vaa import (
    body_digest,
    encode_body,
    encode_vaa,
    guardian_address,
    sign_body,
)
from support.vaa_data import (
    NETWORKS,
    SYNTHETIC,
    raw_vaas,
    reference_directory,
    synthetic_inputs,
    synthetic_rows,
)

SECRETS = {index: bytes([index + 1]) * 32 for index in range(7)}
SETS = {9: [guardian_address(secret) for secret in SECRETS.values()], 10: [guardian_address(b"\x55" * 32)]}
BODY = encode_body(
    timestamp=1,
    nonce=2,
    emitter_chain=3,
    emitter_address=bytes(32),
    sequence=4,
    consistency_level=5,
    payload=b"",
)
SIGNED = sign_body(BODY, SECRETS)


def judge(*raw):
    vaas = decode_vaas(pa.array(raw, pa.binary()))
    found = verify(vaas, SETS)
    return found.reason_text().to_pylist(), found, vaas


def test_every_mainnet_vaa_is_signed_by_a_quorum() -> None:
    vaas = decode_vaas(raw_vaas("mainnet"))
    found = verify(vaas, load_reference().guardian_sets)
    assert found.ok().all()
    assert np.array_equal(found.valid_signatures, vaas.signature_count)
    assert found.detail(vaas).null_count == len(vaas)


@pytest.mark.parametrize(("network", "refused"), [("testnet", 0), ("devnet", 4)])
def test_other_networks_verify_with_their_own_guardian(network, refused) -> None:
    vaas = decode_vaas(raw_vaas(network))
    sets = load_reference(reference_directory(network)).guardian_sets
    found = verify(vaas, sets)
    assert Counter(found.reason_text().to_pylist()) == Counter(
        {"ok": NETWORKS[network] - refused} | ({"bad_signature": refused} if refused else {})
    )
    strange = vaas.signature[vaas.signature_offset[:-1], 64] > 1
    assert np.array_equal(found.ok(), ~strange)


def test_the_synthetic_world_is_refused_for_the_expected_reasons() -> None:
    raw = synthetic_inputs()
    vaas = decode_vaas(raw)
    found = verify(vaas, load_reference(SYNTHETIC / "reference").guardian_sets)
    refused = {
        (hashlib.sha256(raw[i].as_py()).hexdigest(), reason)
        for i, reason in enumerate(found.reason_text().to_pylist())
        if reason != "ok"
    }
    wanted = [row for row in synthetic_rows("quarantine") if row["reason"] in REASONS]
    assert refused == {(row["raw_sha256"], row["reason"]) for row in wanted}
    assert {row["reason"] for row in wanted} == set(REASONS) - {"ok"}


@pytest.mark.parametrize(
    ("signatures", "reason", "valid"),
    [
        (SIGNED, "ok", 7),
        (SIGNED[:5], "ok", 5),
        (SIGNED[2:], "ok", 5),
        (SIGNED[:4], "no_quorum", 4),
        ([], "no_quorum", 0),
        ([*SIGNED[:5], (5, SIGNED[6][1])], "bad_signature", 5),
        ([*SIGNED[:5], (5, bytes(65))], "bad_signature", 5),
        ([*SIGNED[:5], (5, b"\xff" * 65)], "bad_signature", 5),
        ([*SIGNED[:5], (7, SIGNED[6][1])], "bad_signature", 5),
        ([*SIGNED[:5], (255, SIGNED[6][1])], "bad_signature", 5),
        ([(0, SIGNED[1][1])], "bad_signature", 0),
        ([*SIGNED[:2], SIGNED[1], *SIGNED[2:]], "duplicate_guardian", 0),
        ([SIGNED[1], SIGNED[0], *SIGNED[2:]], "malformed", 0),
    ],
)
def test_the_first_reason_that_applies(signatures, reason, valid) -> None:
    good = encode_vaa(9, SIGNED, BODY)
    reasons, found, vaas = judge(good, encode_vaa(9, signatures, BODY), good)
    assert reasons == ["ok", reason, "ok"]
    assert found.valid_signatures.tolist() == [7, valid, 7]
    assert (found.detail(vaas)[1].as_py() is None) == (reason == "ok")


def test_an_unknown_set_comes_before_its_signatures() -> None:
    twice = [SIGNED[0], SIGNED[0]]
    reasons, _, _ = judge(
        encode_vaa(11, twice, BODY), encode_vaa(9, twice, BODY), encode_vaa(2**32 - 1, [], BODY)
    )
    assert reasons == ["unknown_guardian_set", "duplicate_guardian", "unknown_guardian_set"]


def test_each_vaa_is_judged_by_its_own_set() -> None:
    lone = sign_body(BODY, {0: b"\x55" * 32})
    reasons, _, _ = judge(encode_vaa(10, lone, BODY), encode_vaa(9, lone, BODY), encode_vaa(9, SIGNED, BODY))
    assert reasons == ["ok", "bad_signature", "ok"]


@pytest.mark.parametrize("recovery_id", [2, 3, 4, 27, 28, 255])
def test_recovery_ids_are_0_and_1(recovery_id) -> None:
    signature = SIGNED[0][1][:64] + bytes([recovery_id])
    reasons, _, _ = judge(encode_vaa(9, [(0, signature), *SIGNED[1:]], BODY))
    assert reasons == ["bad_signature"]
    assert recover_address(body_digest(BODY), signature) is None


def test_the_other_recovery_id_is_somebody_else() -> None:
    signature = SIGNED[0][1]
    flipped = signature[:64] + bytes([1 - signature[64]])
    assert recover_address(body_digest(BODY), signature) == SETS[9][0]
    assert recover_address(body_digest(BODY), flipped) not in (None, SETS[9][0])


def test_any_flipped_bit_of_the_body_is_noticed() -> None:
    good = encode_vaa(9, SIGNED, BODY)
    first = len(good) - len(BODY)
    forged = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(first, len(good))]
    assert set(judge(*forged)[0]) == {"bad_signature"}


@pytest.mark.parametrize(("guardians", "needed"), [(1, 1), (2, 2), (3, 3), (4, 3), (7, 5), (13, 9), (19, 13)])
def test_quorum(guardians, needed) -> None:
    assert quorum(guardians) == needed


def test_a_zero_address_in_a_set_is_signed_by_nobody() -> None:
    vaas = decode_vaas(pa.array([encode_vaa(1, [(0, bytes(65))], BODY)], pa.binary()))
    found = verify(vaas, {1: [bytes(20)]})
    assert found.reason_text().to_pylist() == ["bad_signature"]


def test_nothing_to_verify() -> None:
    vaas = decode_vaas(pa.array([], pa.binary()))
    assert len(verify(vaas, SETS).reason) == 0
    assert verify(decode_vaas(pa.array([b"\x01"])), {}).reason_text().to_pylist() == ["malformed"]
