"""From milestone timestamps to days: which milestones belong to a UTC date, and which are absent."""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from permalake.iota.cone.source_records import MilestoneDay

_GAPS_SHOWN = 3


def days_of(times: DataFrame, start: date, end: date) -> list[MilestoneDay]:
    """Days of ``start``..``end`` that have milestones, from (milestone_index, timestamp [unix s]) rows."""
    dated = times.select("milestone_index", F.to_date(F.timestamp_seconds("timestamp")).alias("date"))
    wanted = dated.where(F.col("date").between(start, end)).distinct()
    rows = (
        wanted.groupBy("date")
        .agg(F.min("milestone_index"), F.max("milestone_index"), F.count("*"))
        .orderBy("date")
        .collect()
    )
    torn = [day for day, first, last, count in rows if count != last - first + 1]
    gaps = _gaps(wanted.where(F.col("date").isin(torn))) if torn else {}
    return [MilestoneDay(day, first, last, gaps.get(day, ())) for day, first, last, _ in rows]


def _gaps(dated: DataFrame) -> dict[date, tuple[tuple[int, int], ...]]:
    before = F.lag("milestone_index").over(Window.partitionBy("date").orderBy("milestone_index"))
    rows = (
        dated.select("date", (before + 1).alias("first"), (F.col("milestone_index") - 1).alias("last"))
        .where("first <= last")
        .groupBy("date")
        .agg(F.slice(F.sort_array(F.collect_list(F.struct("first", "last"))), 1, _GAPS_SHOWN).alias("gaps"))
        .collect()
    )
    return {row["date"]: tuple((gap["first"], gap["last"]) for gap in row["gaps"]) for row in rows}
