"""Signatures of a known key against recovery by libsecp256k1, for sound, broken and contrived ones."""

import numpy as np
import pyarrow as pa
import pytest
from coincurve import PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from permalake.wormhole.codec import guardians
from permalake.wormhole.codec.known_signer import signed_by
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference
from permalake_simulate.wormhole.encode_vaa import guardian_address
from support.vaa_data import SYNTHETIC, raw_vaas, synthetic_inputs

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
# The generator itself and its negative make sums double a point and meet infinity.
SECRETS = [(1).to_bytes(32), (ORDER - 1).to_bytes(32), (256).to_bytes(32), b"\x07" * 32]
NUMBERS = st.sampled_from([0, 1, ORDER - 1, ORDER, 2**256 - 1, 256**31]).map(
    lambda number: number.to_bytes(32)
)


def key_of(secret):
    return PrivateKey(secret).public_key.format()


@st.composite
def signed(draw):
    """Draw a signature and what it signs, sound or with one part replaced."""
    secret = draw(st.sampled_from(SECRETS))
    digest = draw(st.one_of(st.binary(min_size=32, max_size=32), NUMBERS))
    signature = PrivateKey(secret).sign_recoverable(digest, hasher=None)
    r, s, parity = signature[:32], signature[32:64], signature[64:]
    changed = draw(st.sampled_from(["nothing", "r", "s", "parity", "digest", "high s"]))
    other = draw(st.one_of(st.binary(min_size=32, max_size=32), NUMBERS))
    if changed == "r":
        r = other
    elif changed == "s":
        s = other
    elif changed == "parity":
        parity = bytes([draw(st.integers(0, 255))])
    elif changed == "digest":
        digest = other
    elif changed == "high s":
        s, parity = (ORDER - int.from_bytes(s)).to_bytes(32), bytes([parity[0] ^ 1])
    return r + s + parity, digest


@given(st.lists(signed(), max_size=20), st.sampled_from(SECRETS))
def test_a_signature_is_the_keys_if_it_recovers_to_it(cases, secret) -> None:
    key = key_of(secret)
    signatures = np.frombuffer(b"".join(one for one, _ in cases), np.uint8).reshape(-1, 65)
    digests = np.frombuffer(b"".join(one for _, one in cases), np.uint8).reshape(-1, 32)
    assert signed_by(key, signatures, digests).tolist() == [
        guardians.recover_address(digest, signature) == guardian_address(secret)
        for signature, digest in cases
    ]


def test_no_signature_meets_infinity() -> None:
    """The sum u1·G + u2·P is infinity where P = -G and u1 = u2: where the digest is r."""
    r = PrivateKey(b"\x09" * 32).sign_recoverable(b"\x01" * 32, hasher=None)[:32]
    signature = np.frombuffer(r + (5).to_bytes(32) + b"\x00", np.uint8).reshape(1, 65)
    assert not signed_by(key_of(SECRETS[1]), signature, np.frombuffer(r, np.uint8).reshape(1, 32)).any()


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no public key"):
        signed_by(bytes(33), np.zeros((1, 65), np.uint8), np.zeros((1, 32), np.uint8))


def same(found, wanted):
    return np.array_equal(found.reason, wanted.reason) and np.array_equal(
        found.valid_signatures, wanted.valid_signatures
    )


@pytest.mark.parametrize("inputs", [lambda: raw_vaas("mainnet"), synthetic_inputs])
@pytest.mark.parametrize("broken", [0, 40])
def test_vaas_verify_alike_with_and_without_recovery(monkeypatch, inputs, broken) -> None:
    """Verification does not depend on how many signatures of a guardian come at once."""
    rng = np.random.default_rng(broken)
    raw = [bytearray(one) for one in inputs().to_pylist()]
    for one in raw:
        for _ in range(int(rng.integers(0, broken + 1)) if len(one) > 6 else 0):
            one[int(rng.integers(6, len(one)))] ^= 1 << int(rng.integers(0, 8))
    vaas = decode_vaas(pa.array(map(bytes, raw), pa.binary()))
    sets = load_reference(SYNTHETIC / "reference").guardian_sets
    by_recovery = guardians.verify(vaas, sets)
    monkeypatch.setattr(guardians, "MANY", 1)
    assert same(guardians.verify(vaas, sets), by_recovery)
    assert by_recovery.valid_signatures.any()


def test_a_guardian_without_any_sound_signature_is_not_guessed(monkeypatch) -> None:
    vaas = decode_vaas(raw_vaas("mainnet"))
    strange = {
        index: [guardian_address(b"\x05" * 32)] * 19 for index in set(vaas.guardian_set_index.tolist())
    }
    monkeypatch.setattr(guardians, "MANY", 1)
    assert not guardians.verify(vaas, strange).valid_signatures.any()
