"""SQL of exact sums, and the functions that the queries of enrichment call."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa

from permalake.contracts.sql_functions import SqlFunction
from permalake.wormhole.codec import native_addresses
from permalake.wormhole.codec.uint256 import scaled_amount
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables import exact_amounts
from permalake.wormhole.tables.exact_amounts import DECIMALS, LIMB_DIGITS, LIMB_NAMES, LIMIT, USD

_PRICE, _SUM = "decimal(38,18)", "decimal(38,0)"
_VALUE = f"decimal({USD.precision},{USD.scale})"


def functions(reference: Path | None) -> tuple[SqlFunction, ...]:
    """Return what the queries call; ``reference``: reference data beside the bundled one."""
    return (
        SqlFunction("scaled_amount", scaled_amount, ("string", "int"), "string"),
        SqlFunction("value_in_usd", exact_amounts.values, ("string", _PRICE), _VALUE),
        SqlFunction("joined_limbs", exact_amounts.joined_limbs, (_SUM,) * len(LIMB_NAMES), "string"),
        SqlFunction("joined_usd", _joined_usd, (_SUM, _VALUE), _VALUE),
        SqlFunction("uint256_word", exact_amounts.words, ("string",), "string"),
        SqlFunction("native_token", partial(_tokens, reference), ("int", "string"), "string"),
        SqlFunction("native_account", partial(_accounts, reference), ("int", "string"), "string"),
    )


def limbs(amount: str) -> list[str]:
    """Return an amount (decimal text, may be negative) in units of 10^-8 as limbs, lowest first.

    The limbs of null are null. Summing them one by one and joining the sums gives the exact sum.
    """
    plain = f"ltrim({amount}, '-')"
    fraction = f"rpad(split_part({plain}, '.', 2), {DECIMALS}, '0')"
    digits = f"lpad(split_part({plain}, '.', 1) || {fraction}, {LIMB_DIGITS * len(LIMB_NAMES)}, '0')"
    sign = f"CASE WHEN starts_with({amount}, '-') THEN -1 ELSE 1 END"
    return [
        f"CAST(substring({digits}, {1 + LIMB_DIGITS * place}, {LIMB_DIGITS}) AS DECIMAL(38,0)) * {sign}"
        for place in reversed(range(len(LIMB_NAMES)))
    ]


def amount_sum(amount: str) -> str:
    """Return the exact sum of amounts (decimal text), null where all are null."""
    return f"joined_limbs({', '.join(f'sum({limb})' for limb in limbs(amount))})"


def usd_sum(value: str) -> str:
    """Return the sum of values (decimal(38,8), not negative); null where all are null, and beyond the type.

    Dollars and their fractions are summed apart, as sums have no more digits than what they add up.
    """
    return f"joined_usd(sum(CAST(floor({value}) AS DECIMAL(30,0))), CAST(sum({value} % 1) AS DECIMAL(38,8)))"


def _joined_usd(dollars: pa.Array, fractions: pa.Array) -> pa.Array:
    pairs = zip(dollars.to_pylist(), fractions.to_pylist(), strict=True)
    return pa.array([_total(*pair) for pair in pairs], USD)


def _total(dollars: Decimal | None, fractions: Decimal | None) -> Decimal | None:
    if dollars is None or fractions is None:
        return None
    total = exact_amounts.EXACT.add(dollars, fractions)
    return total if total < LIMIT else None


def _tokens(reference: Path | None, chains: pa.Array, addresses: pa.Array) -> pa.Array:
    return native_addresses.native_tokens(chains, addresses, load_reference(reference).chains)


def _accounts(reference: Path | None, chains: pa.Array, addresses: pa.Array) -> pa.Array:
    return native_addresses.native_addresses(chains, addresses, load_reference(reference).chains)
