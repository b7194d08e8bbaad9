"""Exact arithmetic on amounts: decimal text with at most 8 decimals and up to 78 digits before the point.

The engines' decimals end at 38 digits, a uint256 has 78. They add up all the same: an amount in units
of 10^-8 is cut into limbs of 18 digits, each limb is summed as a decimal, and only the few sums meet
Python's integers.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StringType

if TYPE_CHECKING:
    from pyspark.sql._typing import UserDefinedFunctionLike

DECIMALS = 8
USD = DecimalType(38, DECIMALS)
LIMB_DIGITS = 18
_LIMBS = 5  # 90 digits: 78 of a uint256, 8 decimals, and room for a carry
LIMIT = Decimal(10) ** (38 - DECIMALS)
_CENT = Decimal(1).scaleb(-DECIMALS)
EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)


def _on_arrow(kind: DataType) -> Callable[[Callable[..., pa.Array]], UserDefinedFunctionLike]:
    """Return a decorator for scalar functions on whole Arrow arrays."""
    return F.arrow_udf(returnType=kind)  # type: ignore[call-overload,no-any-return]


def limbs(amount: Column, sign: Column | None = None) -> list[Column]:
    """Split ``amount`` (decimal text, may be negative) in units of 10^-8 into limbs, lowest first.

    The limbs of null are null. Summing them column by column and joining them with :func:`joined` gives the
    exact sum.
    """
    negative = F.startswith(amount, F.lit("-"))
    plain = F.ltrim(amount, F.lit("-"))
    whole = F.substring_index(plain, ".", 1)
    fraction = F.when(F.contains(plain, F.lit(".")), F.substring_index(plain, ".", -1)).otherwise("")
    digits = F.lpad(F.concat(whole, F.rpad(fraction, DECIMALS, "0")), LIMB_DIGITS * _LIMBS, "0")
    direction = F.when(negative, F.lit(-1)).otherwise(F.lit(1)) * (F.lit(1) if sign is None else sign)
    return [
        (F.substring(digits, 1 + LIMB_DIGITS * (_LIMBS - 1 - place), LIMB_DIGITS).cast("long") * direction)
        .cast("decimal(38,0)")
        .alias(f"limb_{place}")
        for place in range(_LIMBS)
    ]


LIMB_NAMES = tuple(f"limb_{place}" for place in range(_LIMBS))


def joined(*sums: Column) -> Column:
    """Join sums of limbs, lowest first, to decimal text without trailing zeros; null when they are null."""
    return _joined(*sums)


@_on_arrow(StringType())
def _joined(*sums: pa.Array) -> pa.Array:
    return joined_limbs(*sums)


def joined_limbs(*sums: pa.Array) -> pa.Array:
    """Join sums of limbs, as :func:`joined`."""
    rows = zip(*(limb.to_pylist() for limb in sums), strict=True)
    return pa.array([_text(row) for row in rows], pa.string())


def _text(row: tuple[Decimal | None, ...]) -> str | None:
    if row[0] is None:
        return None
    total = sum(int(limb or 0) * 10 ** (LIMB_DIGITS * place) for place, limb in enumerate(row))
    whole, fraction = divmod(abs(total), 10**DECIMALS)
    text = f"{whole}.{fraction:0{DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if total < 0 else text


@_on_arrow(USD)
def notional(amount: pa.Array, price: pa.Array) -> pa.Array:
    """Return amount (decimal text) x price, half-even to 8 decimals; null beyond decimal(38,8)."""
    return values(amount, price)


def values(amount: pa.Array, price: pa.Array) -> pa.Array:
    """Return amounts in dollars, as :func:`notional`."""
    pairs = zip(amount.to_pylist(), price.to_pylist(), strict=True)
    return pa.array([_value(*pair) for pair in pairs], pa.decimal128(USD.precision, USD.scale))


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
