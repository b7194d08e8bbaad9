"""Exact arithmetic on amounts: decimal text with at most 8 decimals and up to 78 digits before the point.

The engines' decimals end at 38 digits, a uint256 has 78. They add up all the same: an amount in units
of 10^-8 is cut into limbs of 18 digits, each limb is summed as a decimal, and only the few sums meet
Python's integers.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import pyarrow as pa

DECIMALS = 8
USD = pa.decimal128(38, DECIMALS)
LIMB_DIGITS = 18
_LIMBS = 5  # 90 digits: 78 of a uint256, 8 decimals, and room for a carry
LIMIT = Decimal(10) ** (38 - DECIMALS)
_CENT = Decimal(1).scaleb(-DECIMALS)
EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)
LIMB_NAMES = tuple(f"limb_{place}" for place in range(_LIMBS))


def joined_limbs(*sums: pa.Array) -> pa.Array:
    """Join sums of limbs, lowest first, to decimal text without trailing zeros; null when they are null."""
    rows = zip(*(limb.to_pylist() for limb in sums), strict=True)
    return pa.array([_text(row) for row in rows], pa.string())


def _text(row: tuple[Decimal | None, ...]) -> str | None:
    if row[0] is None:
        return None
    total = sum(int(limb or 0) * 10 ** (LIMB_DIGITS * place) for place, limb in enumerate(row))
    whole, fraction = divmod(abs(total), 10**DECIMALS)
    text = f"{whole}.{fraction:0{DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if total < 0 else text


def values(amount: pa.Array, price: pa.Array) -> pa.Array:
    """Return amount (decimal text) x price, half-even to 8 decimals; null beyond decimal(38,8)."""
    pairs = zip(amount.to_pylist(), price.to_pylist(), strict=True)
    return pa.array([_value(*pair) for pair in pairs], USD)


def _value(amount: str | None, price: Decimal | None) -> Decimal | None:
    if amount is None or price is None:
        return None
    value = EXACT.multiply(Decimal(amount), price).quantize(_CENT, context=EXACT)
    return value if value.copy_abs() < LIMIT else None  # abs() would round


def words(number: pa.Array) -> pa.Array:
    """Return uint256s (decimal text) as the 64 hex digits of their bytes."""
    return pa.array(
        [None if value is None else f"{int(value):064x}" for value in number.to_pylist()], pa.string()
    )
