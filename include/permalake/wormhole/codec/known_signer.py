"""Many ECDSA signatures of one secp256k1 key that is known: whether each is the key's, in half the time.

Recovery finds the key behind a signature ``(r, s, recovery id)`` of the digest z. With the key P at hand,
the signature is P's exactly if the point ``(z/s)·G + (r/s)·P`` has the x coordinate r and the parity that the
recovery id names (SEC 1, sections 4.1.4 and 4.1.6). Tables of the multiples ``d · 256^j`` of G and P
(0 < d < 256, 0 <= j < 32) make that a sum of at most 64 points, which libsecp256k1 adds up in one call.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np
from coincurve import GLOBAL_CONTEXT, PublicKey
from coincurve._libsecp256k1 import ffi, lib

from permalake.arrays.cursor import I64, U8
from permalake.wormhole.codec.vaa import Bool

MANY = 2_000
"""From so many signatures on, the tables of a key cost less than they save (about 35 ms, and 19 µs each)."""

_ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_PLACES, _DIGITS = 32, 255
_POINT_SIZE = 64  # of libsecp256k1's own form of a point
_COMPRESSED_SIZE = 33
_AT_ONCE = 8_192  # bounds the pointers to 4 MiB
_NO_POINT = bytes(_COMPRESSED_SIZE)


def signed_by(public_key: bytes, signatures: U8, digests: U8) -> Bool:
    """Return which signatures recover to the key, bool[k].

    ``signatures`` u8[k, 65] hold r, s (big-endian) and a recovery id, of which 0 and 1 are accepted;
    ``digests`` u8[k, 32] is what they sign. ``public_key`` is serialized, compressed or not.
    """
    parts = range(0, len(signatures), _AT_ONCE)
    signed = [_signed(public_key, signatures[n : n + _AT_ONCE], digests[n : n + _AT_ONCE]) for n in parts]
    return np.concatenate([np.zeros(0, bool), *signed])


def _signed(public_key: bytes, signatures: U8, digests: U8) -> Bool:
    r, s = _numbers(signatures[:, :32]), _numbers(signatures[:, 32:64])
    sound = np.array([0 < a < _ORDER and 0 < b < _ORDER for a, b in zip(r, s, strict=True)], bool)
    sound &= signatures[:, 64] <= 1
    inverses = _inverses([b if fine else 1 for b, fine in zip(s, sound.tolist(), strict=True)])
    of_base = [z * b % _ORDER for z, b in zip(_numbers(digests), inverses, strict=True)]
    of_key = [a * b % _ORDER for a, b in zip(r, inverses, strict=True)]
    points = _sums(_multiples(_base()), of_base, _multiples(public_key), of_key)
    same_x = (points[:, 1:] == signatures[:, :32]).all(axis=1)
    # Byte 0 of a compressed point is 2 or 3, by the parity of y.
    signed: Bool = sound & same_x & (points[:, 0] == 2 + signatures[:, 64])
    return signed


def _numbers(rows: U8) -> list[int]:
    return [int.from_bytes(row) for row in map(bytes, np.ascontiguousarray(rows))]


def _inverses(numbers: list[int]) -> list[int]:
    """Return the inverse of each number modulo the order, by one inversion for all (Montgomery)."""
    before = list(accumulate(numbers, lambda product, number: product * number % _ORDER, initial=1))
    inverse = pow(before.pop(), -1, _ORDER)
    inverses = []
    for number, product in zip(reversed(numbers), reversed(before), strict=True):
        inverses.append(inverse * product % _ORDER)
        inverse = inverse * number % _ORDER
    inverses.reverse()
    return inverses


def _sums(first: U8, of_first: list[int], second: U8, of_second: list[int]) -> U8:
    """Return ``of_first · first + of_second · second`` as compressed points, u8[k, 33]; infinity as zeros."""
    digits = np.concatenate([_digits(of_first), _digits(of_second)], axis=1)
    used = digits != 0
    place = (np.arange(_PLACES) * _DIGITS - 1) * _POINT_SIZE
    start = np.concatenate([place + first.ctypes.data, place + second.ctypes.data])
    pointers = (digits * _POINT_SIZE + start)[used]
    count = used.sum(axis=1)
    begin = np.cumsum(count) - count
    context, combine = GLOBAL_CONTEXT.ctx, lib.secp256k1_ec_pubkey_combine
    serialize, form = lib.secp256k1_ec_pubkey_serialize, lib.SECP256K1_EC_COMPRESSED
    origin = ffi.cast("secp256k1_pubkey **", pointers.ctypes.data)
    total = ffi.new("secp256k1_pubkey *")
    size = ffi.new("size_t *", _COMPRESSED_SIZE)
    written = ffi.new("unsigned char[]", _COMPRESSED_SIZE)
    point = ffi.buffer(written)
    sums = []
    for at, points in zip(begin.tolist(), count.tolist(), strict=True):
        if points and combine(context, total, origin + at, points):
            serialize(context, written, size, total, form)
            sums.append(point[:])
        else:
            sums.append(_NO_POINT)
    return np.frombuffer(b"".join(sums), np.uint8).reshape(-1, _COMPRESSED_SIZE)


def _digits(numbers: list[int]) -> I64:
    """Return the digits to the base 256, the lowest first, i64[k, 32]."""
    written = b"".join([number.to_bytes(_PLACES, "little") for number in numbers])
    return np.frombuffer(written, np.uint8).reshape(-1, _PLACES).astype(np.int64)


def _base() -> bytes:
    base: bytes = PublicKey.from_secret((1).to_bytes(32)).format()
    return base


@lru_cache(maxsize=64)  # 0.5 MiB each; a guardian set has 19 keys
def _multiples(public_key: bytes) -> U8:
    """Return ``d · 256^j`` times a key in libsecp256k1's own form, u8[32 · 255, 64], by j and d."""
    table = np.empty((_PLACES * _DIGITS, _POINT_SIZE), np.uint8)
    points = ffi.cast("secp256k1_pubkey *", table.ctypes.data)
    addends = ffi.new("secp256k1_pubkey *[2]")
    if not lib.secp256k1_ec_pubkey_parse(GLOBAL_CONTEXT.ctx, points, public_key, len(public_key)):
        raise ValueError(f"{public_key.hex()} is no public key")
    for place in range(_PLACES):
        power = points + place * _DIGITS
        addends[0] = power
        last = _DIGITS + (place + 1 < _PLACES)
        for digit in range(1, last):
            addends[1] = power + (digit - 1)
            lib.secp256k1_ec_pubkey_combine(GLOBAL_CONTEXT.ctx, power + digit, addends, 2)
    return table
