"""Laws across tables, as double-entry bookkeeping.

Most laws say that two ways of counting agree, day by day and place by place (a milestone, a transaction, a
row key). Each side hands in entries; one grouping over the entries of all laws tells where sides differ, so
that thirty laws cost little more than one. A law that does not fit hands in its own violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.audit.suite import CRITICAL, Severity

SCHEMA = "law string, date date, place string, expected string, found string"
_VALUE = "decimal(38,8)"
Kind = Literal["balance", "covered", "violations"]


@dataclass(frozen=True)
class Scope:
    """What laws may read: ``table`` gives the audited days of a table by name; the rest is configuration."""

    table: Callable[[str], DataFrame]
    chunk_size: int | None = None
    reference: Path | None = None
    window_hours: float = 12.0

    def __call__(self, name: str) -> DataFrame:
        return self.table(name)


Frame = Callable[[Scope], DataFrame]


@dataclass(frozen=True)
class Law:
    """``table`` is where a violation is reported; ``text`` says in one sentence what is expected."""

    name: str
    table: str
    text: str
    kind: Kind
    sides: tuple[Frame, ...] = field(repr=False)
    severity: Severity = CRITICAL


def balance(
    name: str, table: str, text: str, *, expected: Frame, found: Frame, severity: Severity = CRITICAL
) -> Law:
    """Both sides' values add up to the same at every date and place. Sides are frames of :func:`entries`."""
    return Law(name, table, text, "balance", (expected, found), severity)


def covered(
    name: str, table: str, text: str, *, things: Frame, known: Frame, severity: Severity = CRITICAL
) -> Law:
    """Every date and place of ``things`` is among ``known``. Sides are frames of :func:`entries`."""
    return Law(name, table, text, "covered", (things, known), severity)


def violations(name: str, table: str, text: str, find: Frame, severity: Severity = CRITICAL) -> Law:
    """``find`` gives the violations themselves: (date, place, expected, found)."""
    return Law(name, table, text, "violations", (find,), severity)


def entries(frame: DataFrame, place: Column | str, value: Column | int = 1) -> DataFrame:
    """Entries of a law's side: (date, place, value). ``value`` counts rows unless given."""
    amount = F.lit(value) if isinstance(value, int) else value
    named = F.col(place) if isinstance(place, str) else place
    return frame.select("date", named.cast("string").alias("place"), amount.cast(_VALUE).alias("value"))


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """All rows of frames with the same columns."""
    return reduce(DataFrame.unionByName, frames)


def broken(spark: SparkSession, laws: Sequence[Law], scope: Scope) -> DataFrame:
    """Violations of all laws: (law, date, place, expected, found), computed and kept in the session.

    A law that cannot be computed is broken too: a row without a date, whose ``found`` is the error.
    """
    frames, errors = [], []
    for law in laws:
        try:
            frames.append((law, _prepared(law, scope)))
        except Exception as error:
            errors.append(_error_row(law, error))
    try:
        return _kept(spark, frames, errors)
    except Exception:
        # One of them cannot be computed: find out which.
        kept, sound = [], []
        for law, prepared in frames:
            try:
                kept.append(_kept(spark, [(law, prepared)], []))
            except Exception as error:
                errors.append(_error_row(law, error))
            else:
                sound.append(law)
        return union([*kept, spark.createDataFrame(errors, SCHEMA)])


def _prepared(law: Law, scope: Scope) -> DataFrame:
    """Entries of both sides in one frame, or the violations; analysed, so that a missing column shows here."""
    if law.kind == "violations":
        texts = [F.col(name).cast("string").alias(name) for name in ("place", "expected", "found")]
        return law.sides[0](scope).select(F.lit(law.name).alias("law"), "date", *texts)
    nothing = F.lit(0).cast(_VALUE)
    first, second = (side(scope) for side in law.sides)
    return _side(law, first, F.col("value"), nothing).union(_side(law, second, nothing, F.col("value")))


def _side(law: Law, frame: DataFrame, expected: Column, found: Column) -> DataFrame:
    return frame.select(
        F.lit(law.name).alias("law"),
        "date",
        "place",
        expected.alias("expected"),
        found.alias("found"),
    )


def _kept(
    spark: SparkSession, frames: Sequence[tuple[Law, DataFrame]], errors: Sequence[tuple[object, ...]]
) -> DataFrame:
    parts = [frame for law, frame in frames if law.kind == "violations"]
    if booked := [frame for law, frame in frames if law.kind != "violations"]:
        parts.append(_compared(union(booked), [law.name for law, _ in frames if law.kind == "covered"]))
    if errors:
        parts.append(spark.createDataFrame(list(errors), SCHEMA))
    if not parts:
        return spark.createDataFrame([], SCHEMA)
    kept = union(parts).persist()
    try:
        kept.count()
    except Exception:
        kept.unpersist()
        raise
    return kept


def _compared(entered: DataFrame, covering: Sequence[str]) -> DataFrame:
    """A date and place that one side does not know is broken even when the other's values add up to 0, but
    for a balance, where nothing equals nothing."""
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


def one_line(error: BaseException | str) -> str:
    """The first line of an error, with its type."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return first[:300] if isinstance(error, str) else f"{type(error).__name__}: {first}"[:300]
