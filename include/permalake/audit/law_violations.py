"""Evaluation of laws: all of them in one query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.audit.findings import one_line
from permalake.audit.laws import VALUE_TYPE, Law, union
from permalake.audit.scope import Scope

SCHEMA = "law string, date date, place string, expected string, found string"
_Shape = Callable[[DataFrame], DataFrame]


def law_violations(spark: SparkSession, laws: Sequence[Law], scope: Scope) -> DataFrame:
    """Return the violations of all laws: (law, date, place, expected, found), cached in the session.

    A law that cannot be computed yields one row without a date, whose ``found`` is the error.
    """
    frames: list[tuple[Law, DataFrame]] = []
    errors: list[tuple[object, ...]] = []
    for law in laws:
        try:
            frames.append((law, _prepared(law, scope)))
        except Exception as error:  # noqa: BLE001 (reported as a violation)
            errors.append(_error_row(law, error))
    shape = _in_one_partition if scope.is_small else _unchanged
    try:
        return _cached(spark, frames, errors, shape)
    except Exception:  # noqa: BLE001 (found out law by law)
        return _one_by_one(spark, frames, errors, shape)


def _in_one_partition(frame: DataFrame) -> DataFrame:
    return frame.coalesce(1)


def _unchanged(frame: DataFrame) -> DataFrame:
    return frame


def _one_by_one(
    spark: SparkSession,
    frames: Sequence[tuple[Law, DataFrame]],
    errors: list[tuple[object, ...]],
    shape: _Shape,
) -> DataFrame:
    """Return violations when the common query failed: shows which law is to blame."""
    kept = []
    for law, prepared in frames:
        try:
            kept.append(_cached(spark, [(law, prepared)], [], shape))
        except Exception as error:  # noqa: BLE001 (reported as a violation)
            errors.append(_error_row(law, error))
    return union([*kept, spark.createDataFrame(errors, SCHEMA)])


def _prepared(law: Law, scope: Scope) -> DataFrame:
    """Return the entries of both sides in one frame, or the violations; a missing column raises here."""
    if law.kind == "violations":
        texts = [F.col(name).cast("string").alias(name) for name in ("place", "expected", "found")]
        return law.sides[0](scope).select(F.lit(law.name).alias("law"), "date", *texts)
    nothing = F.lit(0).cast(VALUE_TYPE)
    first, second = (side(scope) for side in law.sides)
    return _booked(law, first, F.col("value"), nothing).union(_booked(law, second, nothing, F.col("value")))


def _booked(law: Law, frame: DataFrame, expected: Column, found: Column) -> DataFrame:
    return frame.select(
        F.lit(law.name).alias("law"), "date", "place", expected.alias("expected"), found.alias("found")
    )


def _cached(
    spark: SparkSession,
    frames: Sequence[tuple[Law, DataFrame]],
    errors: Sequence[tuple[object, ...]],
    shape: _Shape,
) -> DataFrame:
    parts = [frame for law, frame in frames if law.kind == "violations"]
    if booked := [frame for law, frame in frames if law.kind != "violations"]:
        covering = [law.name for law, _ in frames if law.kind == "covered"]
        parts.append(_compared(shape(union(booked)), covering))
    if errors:
        parts.append(spark.createDataFrame(list(errors), SCHEMA))
    if not parts:
        return spark.createDataFrame([], SCHEMA)
    kept = shape(union(parts)).persist()
    try:
        kept.count()
    except Exception:
        kept.unpersist()
        raise
    return kept


def _compared(entered: DataFrame, covering: Sequence[str]) -> DataFrame:
    """Return the places where the sides differ, or that the covering side lacks."""
    sums = entered.groupBy("law", "date", "place").agg(
        F.sum("expected").alias("expected"), F.sum("found").alias("found")
    )
    covers = F.col("law").isin(*covering) if covering else F.lit(False)
    unknown = (F.col("expected") > 0) & (F.col("found") == 0)
    return sums.where(
        F.when(covers, unknown).otherwise(~F.col("expected").eqNullSafe(F.col("found")))
    ).select(
        "law",
        "date",
        "place",
        F.when(covers, F.lit("known")).otherwise(_number("expected")).alias("expected"),
        F.when(covers, F.lit("nothing")).otherwise(_number("found")).alias("found"),
    )


def _number(name: str) -> Column:
    return F.regexp_replace(F.col(name).cast("string"), r"\.?0+$", "")


def _error_row(law: Law, error: Exception) -> tuple[object, ...]:
    return (law.name, None, None, "to be computed", one_line(error))
