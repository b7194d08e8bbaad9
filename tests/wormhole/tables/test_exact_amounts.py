"""Exact sums and values beyond what Spark's decimals hold."""

from decimal import Decimal

from pyspark.sql import functions as F

from permalake.wormhole.tables.exact_amounts import LIMB_NAMES, joined, limbs, notional

LARGEST = str(2**256 - 1)


def total(spark, amounts):
    frame = spark.createDataFrame([(amount,) for amount in amounts], "amount string")
    sums = frame.select(*limbs(F.col("amount"))).agg(*(F.sum(name).alias(name) for name in LIMB_NAMES))
    return sums.select(joined(*(F.col(name) for name in LIMB_NAMES))).first()[0]


def test_sums_of_amounts_are_exact(spark) -> None:
    assert total(spark, [LARGEST, LARGEST, "0.00000001", None]) == f"{2 * (2**256 - 1)}.00000001"
    assert total(spark, ["0.5", "-1.25", "0.75"]) == "0"
    assert total(spark, ["1", f"-{LARGEST}.00000001"]) == f"-{2**256 - 2}.00000001"
    assert total(spark, [None]) is None


def test_a_value_is_rounded_half_even_and_null_when_it_does_not_fit(spark) -> None:
    rows = [
        ("0.5", "0.00000001"),
        ("1.5", "0.00000001"),
        ("999999999999999999999999999999.99999999", "1"),
        ("999999999999999999999999999999.99999999", "1.00000001"),
        (LARGEST, "0.000000000000000001"),
        (None, "1"),
        ("1", None),
    ]
    frame = spark.createDataFrame(rows, "amount string, price string")
    value = notional(F.col("amount"), F.col("price").cast("decimal(38,18)"))
    assert [row[0] for row in frame.select(value).collect()] == [
        Decimal("0E-8"),
        Decimal("0.00000002"),
        Decimal("999999999999999999999999999999.99999999"),
        None,
        None,
        None,
        None,
    ]
