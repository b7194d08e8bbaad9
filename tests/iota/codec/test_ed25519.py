"""Signatures by the rule of ZIP-215: ordinary ones, and those on which libraries differ."""

from itertools import product

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from permalake.iota.codec.ed25519 import is_valid
from support import ed25519_rule

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
MESSAGE = b"Zcash"  # that of ZIP-215's own conformance vectors


def small_order():
    """Every encoding, canonical or not, of the eight points of small order."""
    y8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
    for y in (0, 1, P - 1, y8, P - y8):
        for encoded, sign in product((y, y + P), (0, 1)):
            if encoded < 2**255:
                yield (encoded | sign << 255).to_bytes(32, "little")


def test_there_are_fourteen_encodings_of_points_of_small_order() -> None:
    points = set(small_order())
    assert len(points) == 14
    neutral = [ed25519_rule.times(8, ed25519_rule.decompress(one)) for one in points]
    assert all(x % P == 0 and (y - z) % P == 0 for x, y, z, _ in neutral)


@pytest.mark.parametrize("key", sorted(small_order()))
def test_points_of_small_order_are_valid_in_every_encoding(key) -> None:
    """The 196 signatures (A, R, s = 0) of ZIP-215's conformance test."""
    assert all(is_valid(key, commitment + bytes(32), MESSAGE) for commitment in small_order())


def test_ordinary_signatures_by_the_slow_rule_and_the_fast_one() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, signature = key.public_key().public_bytes_raw(), key.sign(MESSAGE)
    for rule in (is_valid, ed25519_rule.is_valid):
        assert rule(public, signature, MESSAGE)
        assert not rule(public, signature, MESSAGE + b".")
        assert not rule(public, signature[:-1] + bytes([signature[-1] ^ 1]), MESSAGE)
        assert not rule(bytes([public[0] ^ 1]) + public[1:], signature, MESSAGE)


@given(st.binary(min_size=32, max_size=32), st.sampled_from(sorted(small_order())), st.integers(0, 511))
def test_the_library_agrees_with_the_rule_on_signatures_that_were_altered(seed, point, bit) -> None:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = key.public_key().public_bytes_raw(), bytearray(key.sign(MESSAGE))
    signature[bit // 8] ^= 1 << bit % 8
    # A point of small order added to the commitment's place, or in place of the key.
    for own, tried in (
        (public, bytes(signature)),
        (public, point + bytes(signature[32:])),
        (point, bytes(signature)),
    ):
        assert is_valid(own, tried, MESSAGE) == ed25519_rule.is_valid(own, tried, MESSAGE)


def test_a_scalar_beyond_the_order_and_what_is_no_point_are_refused() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, signature = key.public_key().public_bytes_raw(), key.sign(MESSAGE)
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    assert not is_valid(public, signature[:32] + scalar.to_bytes(32, "little"), MESSAGE)
    off_curve = next(
        one
        for one in ((n).to_bytes(32, "little") for n in range(2, 20))
        if ed25519_rule.decompress(one) is None
    )
    assert not is_valid(off_curve, signature, MESSAGE)
    assert not is_valid(public, off_curve + signature[32:], MESSAGE)
