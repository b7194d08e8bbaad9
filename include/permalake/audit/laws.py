"""Laws across tables, as double-entry bookkeeping.

Most laws say that two ways of counting agree, day by day and place by place (a milestone, a transaction, a
row key). Each side hands in entries; one grouping over the entries of all laws tells where sides differ, so
that thirty laws cost little more than one. A law that does not fit hands in its own violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.audit.suite import CRITICAL, Severity

SCHEMA = "law string, date date, place string, expected string, found string"
SMALL = 50_000
"""Rows of all tables together that one partition of each is enough for."""
_VALUE = "decimal(38,8)"
Kind = Literal["balance", "covered", "violations"]


@dataclass(frozen=True)
class Scope:
    """What laws may read: ``table`` gives the audited days of a table by name; the rest is configuration.

    ``rows`` tells how many rows tables have, where that is known: empty ones cost nothing then, and few rows
    are read once and kept in one partition. Every task of a query is sent the plan of all of its laws, so
    that tasks without work would cost more than the work.
    """

    table: Callable[[str], DataFrame]
    chunk_size: int | None = None
    reference: Path | None = None
    window_hours: float = 12.0
    max_missing: float = 1.0
    rows: Mapping[str, int] | None = None
    history: Callable[[str], DataFrame | None] | None = None
    _shared: dict[str, DataFrame] = field(default_factory=dict, repr=False)

    def __call__(self, name: str) -> DataFrame:
        if self.is_empty(name):
            # Spark folds away whatever an empty local relation takes part in.
            frame = self.table(name)
            return frame.sparkSession.createDataFrame([], frame.schema)
        if self.is_small:
            return self.shared(f"table {name}", lambda: self.table(name).coalesce(1))
        return self.table(name)

    @property
    def is_small(self) -> bool:
        """Whether all rows are known to be few enough for one partition in memory."""
        return self.rows is not None and sum(self.rows.values()) <= SMALL

    def before(self, name: str) -> DataFrame | None:
        """A table's rows of the latest day before the audited ones; None where it is not known."""
        return self.history(name) if self.history else None

    def is_empty(self, name: str) -> bool:
        """Whether the table is known to have no rows."""
        return self.rows is not None and name in self.rows and not self.rows[name]

    def shared(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """A frame that several laws read: computed once, kept until :meth:`release`. Few rows are kept as
        they are: Spark compiles code for the columns of each frame that it caches."""
        if name not in self._shared:
            frame = make()
            kept = frame.localCheckpoint(eager=False) if self.is_small else frame.persist()
            self._shared.setdefault(name, kept)
        return self._shared[name]

    def release(self) -> None:
        """Let go of the shared frames."""
        while self._shared:
            self._shared.popitem()[1].unpersist()

    def narrowed(self, start: date, end: date) -> Scope:
        """The same for some of the days."""

        def table(name: str) -> DataFrame:
            return self.table(name).where(F.col("date").between(F.lit(start), F.lit(end)))

        return Scope(table, self.chunk_size, self.reference, self.window_hours, self.max_missing)


Frame = Callable[[Scope], DataFrame]
Shape = Callable[[DataFrame], DataFrame]


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


def entries(frame: DataFrame, place: str, value: str = "1") -> DataFrame:
    """Entries of a law's side: (date, place, value), in SQL. ``value`` counts rows unless given."""
    return frame.selectExpr(
        "date", f"cast({place} AS string) AS place", f"cast({value} AS {_VALUE}) AS value"
    )


def per_row(frame: DataFrame, **values: str) -> DataFrame:
    """Entries of several values of each row, at places named like them; nulls are left out."""
    pairs = ", ".join(f"'{place}', cast({value} AS {_VALUE})" for place, value in values.items())
    stacked = frame.selectExpr("date", f"stack({len(values)}, {pairs}) AS (place, value)")
    return stacked.where("value IS NOT NULL")


def per_day(frame: DataFrame, **values: str) -> DataFrame:
    """Entries of aggregates of each day, at places named like them."""
    aggregates = (F.expr(value).alias(place) for place, value in values.items())
    return per_row(frame.groupBy("date").agg(*aggregates), **{place: place for place in values})


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """All rows of frames with the same columns. In pairs: Spark goes through a plan with each frame added."""
    parts = list(frames)
    while len(parts) > 1:
        parts = [reduce(DataFrame.unionByName, parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return parts[0]


def broken(spark: SparkSession, laws: Sequence[Law], scope: Scope) -> DataFrame:
    """Violations of all laws: (law, date, place, expected, found), computed and kept in the session.

    A law that cannot be computed is broken too: a row without a date, whose ``found`` is the error.
    """
    frames: list[tuple[Law, DataFrame]] = []
    errors: list[tuple[object, ...]] = []
    for law in laws:
        try:
            frames.append((law, _prepared(law, scope)))
        except Exception as error:
            errors.append(_error_row(law, error))
    shape = _in_one if scope.is_small else _as_it_is
    try:
        return _kept(spark, frames, errors, shape)
    except Exception:
        return _one_by_one(spark, frames, errors, shape)


def _in_one(frame: DataFrame) -> DataFrame:
    return frame.coalesce(1)


def _as_it_is(frame: DataFrame) -> DataFrame:
    return frame


def _one_by_one(
    spark: SparkSession,
    frames: Sequence[tuple[Law, DataFrame]],
    errors: list[tuple[object, ...]],
    shape: Shape,
) -> DataFrame:
    """As :func:`broken` when one of the laws fails while it runs: to tell which."""
    kept = []
    for law, prepared in frames:
        try:
            kept.append(_kept(spark, [(law, prepared)], [], shape))
        except Exception as error:
            errors.append(_error_row(law, error))
    return union([*kept, spark.createDataFrame(errors, SCHEMA)])


def _prepared(law: Law, scope: Scope) -> DataFrame:
    """Entries of both sides in one frame, or the violations; analysed: a missing column shows here."""
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
    spark: SparkSession,
    frames: Sequence[tuple[Law, DataFrame]],
    errors: Sequence[tuple[object, ...]],
    shape: Shape,
) -> DataFrame:
    parts = [frame for law, frame in frames if law.kind == "violations"]
    if booked := [frame for law, frame in frames if law.kind != "violations"]:
        parts.append(
            _compared(shape(union(booked)), [law.name for law, _ in frames if law.kind == "covered"])
        )
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
    """Places where the sides differ, or that the covering side does not know."""
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
