"""Ed25519 as the protocol checks it: the criteria of ZIP-215 (TIP-14), which are laxer than most libraries'.

Libraries differ on signatures with points of small order or with several encodings. Nodes accept these.
libsodium refuses them all, and takes half the time of OpenSSL; what it accepts the exact rule accepts too.
What it refuses is checked again by that rule, which takes some 5 ms and is rarely needed.
"""

from __future__ import annotations

from hashlib import sha512

from nacl.bindings import crypto_sign_open
from nacl.exceptions import CryptoError

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
_BASE = bytes.fromhex("58" + "66" * 31)

# Extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, xy = T/Z.
Point = tuple[int, int, int, int]
_NEUTRAL: Point = (0, 1, 1, 0)


def is_valid(public_key: bytes, signature: bytes, message: bytes, *, exact: bool = True) -> bool:
    """Return whether ``signature`` (64 bytes) of ``message`` is by ``public_key`` (32 bytes).

    Unless ``exact``, the library's refusal is final.
    """
    try:
        crypto_sign_open(signature + message, public_key)
    except CryptoError:
        return exact and _is_valid(public_key, signature, message)
    return True


def _is_valid(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Check 8·S·B = 8·R + 8·k·A (ZIP-215), with S below the group's order; any encoding of A and R counts."""
    key, commitment = _decompress(public_key), _decompress(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    base = _decompress(_BASE)
    if key is None or commitment is None or base is None or scalar >= _ORDER:
        return False
    challenge = int.from_bytes(sha512(signature[:32] + public_key + message).digest(), "little") % _ORDER
    right = _add(commitment, _times(challenge, key))
    difference = _times(8, _add(_times(scalar, base), _negative(right)))
    x, y, z, _ = difference
    return x % _P == 0 and (y - z) % _P == 0


def _decompress(encoded: bytes) -> Point | None:
    """Return the point of an encoding, canonical or not; None if there is none."""
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number % 2**255 % _P
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P:
        return None
    if x & 1 != sign:
        x = -x % _P  # any sign is accepted for x = 0
    return x, y, 1, x * y % _P


def _add(first: Point, second: Point) -> Point:
    (x1, y1, z1, t1), (x2, y2, z2, t2) = first, second
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * t1 * t2 * _D % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _negative(point: Point) -> Point:
    x, y, z, t = point
    return -x % _P, y, z, -t % _P


def _times(scalar: int, point: Point) -> Point:
    total, power = _NEUTRAL, point
    while scalar:
        if scalar & 1:
            total = _add(total, power)
        power = _add(power, power)
        scalar >>= 1
    return total
