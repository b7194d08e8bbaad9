"""The criteria of ZIP-215 in plain Python, as slow as they are plain: what the library must agree with."""

from __future__ import annotations

from hashlib import sha512

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
BASE = bytes.fromhex("58" + "66" * 31)

# Extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, xy = T/Z.
Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def is_valid(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Check 8·S·B = 8·R + 8·k·A (ZIP-215), with S below the group's order; any encoding of A and R counts."""
    key, commitment = decompress(public_key), decompress(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    base = decompress(BASE)
    if key is None or commitment is None or base is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(sha512(signature[:32] + public_key + message).digest(), "little") % ORDER
    right = add(commitment, times(challenge, key))
    difference = times(8, add(times(scalar, base), negative(right)))
    x, y, z, _ = difference
    return x % P == 0 and (y - z) % P == 0


def decompress(encoded: bytes) -> Point | None:
    """Return the point of an encoding, canonical or not; None if there is none."""
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number % 2**255 % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        return None
    if x & 1 != sign:
        x = -x % P  # any sign is accepted for x = 0
    return x, y, 1, x * y % P


def add(first: Point, second: Point) -> Point:
    (x1, y1, z1, t1), (x2, y2, z2, t2) = first, second
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def negative(point: Point) -> Point:
    x, y, z, t = point
    return -x % P, y, z, -t % P


def times(scalar: int, point: Point) -> Point:
    total, power = NEUTRAL, point
    while scalar:
        if scalar & 1:
            total = add(total, power)
        power = add(power, power)
        scalar >>= 1
    return total
