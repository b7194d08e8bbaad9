"""Exact sums and values beyond what decimals of 38 digits hold."""

from decimal import Decimal

import pyarrow as pa

from permalake.wormhole.tables.amount_queries import amount_sum
from permalake.wormhole.tables.exact_amounts import values
from support.wormhole_queries import query_rows

LARGEST = str(2**256 - 1)


def total(amounts):
    schema = pa.schema([("amount", pa.string())])
    [row] = query_rows(
        f"SELECT {amount_sum('amount')} AS amount FROM given",
        schema,
        {},
        {"given": pa.table({"amount": amounts}, schema)},
    )
    return row["amount"]


def test_sums_of_amounts_are_exact() -> None:
    assert total([LARGEST, LARGEST, "0.00000001", None]) == f"{2 * (2**256 - 1)}.00000001"
    assert total(["0.5", "-1.25", "0.75"]) == "0"
    assert total(["1", f"-{LARGEST}.00000001"]) == f"-{2**256 - 2}.00000001"
    assert total([None]) is None


def test_a_value_is_rounded_half_even_and_null_when_it_does_not_fit() -> None:
    rows = [
        ("0.5", "0.00000001"),
        ("1.5", "0.00000001"),
        ("999999999999999999999999999999.99999999", "1"),
        ("999999999999999999999999999999.99999999", "1.00000001"),
        (LARGEST, "0.000000000000000001"),
        (None, "1"),
        ("1", None),
    ]
    amounts, prices = zip(*rows, strict=True)
    price = pa.array([one and Decimal(one) for one in prices], pa.decimal128(38, 18))
    assert values(pa.array(amounts), price).to_pylist() == [
        Decimal("0E-8"),
        Decimal("0.00000002"),
        Decimal("999999999999999999999999999999.99999999"),
        None,
        None,
        None,
        None,
    ]
