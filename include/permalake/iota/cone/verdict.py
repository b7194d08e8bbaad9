"""What the cone found wrong: quarantine rows, and which days it keeps unpublished."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.iota.cone.decoded import Row, of_kind
from permalake.iota.cone.source_records import MilestoneDay

# Causes before consequences: a spoilt block is named before the parents that are missing because of it.
_CAUSES_FIRST = ("malformed", "id_mismatch", "milestone_conflict", "milestone_signature")


def quarantine(decoded: DataFrame, source: str) -> DataFrame:
    """Rows of the ``quarantine`` table."""
    origin = F.concat_ws(" ", F.nullif("origin", F.lit("")), F.concat(F.lit("milestone "), "milestone_index"))
    return (
        of_kind(decoded, Row.PROBLEM)
        .select(F.lit(source).alias("source"), origin.alias("origin"), "reason", "detail", "raw", "date")
        .groupBy("source", "origin", "reason", "raw", "date")
        .agg(F.min("detail").alias("detail"))
    )


def refused_days(decoded: DataFrame, days: Iterable[MilestoneDay]) -> dict[date, str]:
    """Days that do not hold, each with its first cause as one line."""
    torn = {day.date: day.fault or _gap_line(day) for day in days if day.fault or day.gaps}
    broken = {row["date"]: row["reason"] for row in _first_causes(decoded).collect()}
    return dict(sorted((broken | torn).items()))


def disagreements(decoded: DataFrame) -> dict[date, int]:
    """How many transactions of a day have another outcome recomputed than by the source."""
    found = of_kind(decoded, Row.PROBLEM).where(F.col("reason") == "conflict_disagreement")
    return {row["date"]: row["count"] for row in found.groupBy("date").count().collect()}


def _gap_line(day: MilestoneDay) -> str:
    ranges = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in day.gaps)
    return f"milestone {day.gaps[0][0]}: milestone_gap: the source lacks milestones {ranges} of {day.date}"


def _first_causes(decoded: DataFrame) -> DataFrame:
    place = F.array_position(F.array(*map(F.lit, _CAUSES_FIRST)), F.col("reason"))
    rank = F.when(place > 0, place).otherwise(len(_CAUSES_FIRST) + 1)
    line = F.format_string("milestone %d: %s: %s", "milestone_index", "reason", "detail")
    more = F.when(F.col("problems") > 1, F.format_string(" (and %d more)", F.col("problems") - 1))
    return (
        of_kind(decoded, Row.PROBLEM)
        .where("breaks")
        .groupBy("date")
        .agg(
            F.min(F.struct("milestone_index", rank.alias("rank"), line.alias("line"))).alias("first"),
            F.count("*").alias("problems"),
        )
        .select("date", F.concat("first.line", F.coalesce(more, F.lit(""))).alias("reason"))
    )
