"""Figures that run on from day to day: where history begins and is cut, and sums up to each day's end.

A day goes on where the day before it in the lake ends. Where milestones lie between them, history is cut: a
new chapter begins, whose figures count from its first milestone. What is summed here is a few numbers per
day, which Spark has counted; so it is plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, SparkSession

GOES_ON = 0
DAYS = "date date, milestone_index int, chapter int, since_milestone int, checkpoint date"
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Ending:
    """The state that a day leaves behind: its last milestone, from where its figures count, the date from
    which on ``address_balances`` tells every address, and the fingerprint of their state."""

    day: date
    end_ms: int
    since_milestone: int | None
    checkpoint: date
    fingerprint: int = 0


@dataclass(frozen=True, slots=True)
class Chained:
    """A day with milestones, up to its last one, in its chapter: :data:`GOES_ON` when it continues the state
    before the range."""

    day: date
    end_ms: int
    chapter: int
    since_milestone: int | None
    checkpoint: date

    @property
    def stamp(self) -> dict[str, Any]:
        """What every row of a running table says of its day."""
        return {"since_milestone": self.since_milestone, "date": self.day}


def chained(days: Iterable[tuple[date, int, int]], before: Ending | None) -> list[Chained]:
    """Days as (date, start_ms, end_ms) in order, after the day ``before`` them in the lake.

    The first day of a chapter or of a month is a checkpoint.
    """
    found: list[Chained] = []
    last, chapter = before, GOES_ON
    for day, start_ms, end_ms in days:
        goes_on = last is not None and last.end_ms + 1 == start_ms
        since = last.since_milestone if last and goes_on else start_ms
        in_month = last is not None and (last.day.year, last.day.month) == (day.year, day.month)
        checkpoint = last.checkpoint if last and goes_on and in_month else day
        chapter += not goes_on
        found.append(Chained(day, end_ms, chapter, since, checkpoint))
        last = Ending(day, end_ms, since, checkpoint)
    return found


def frame(spark: SparkSession, days: Sequence[Chained]) -> DataFrame:
    """The days as a frame, a row each."""
    return spark.createDataFrame([astuple(day) for day in days], DAYS)


def running(
    days: Sequence[Chained], key: str, measures: Sequence[str], changes: Rows, prior: Rows
) -> list[dict[str, Any]]:
    """Sums of ``measures`` up to each day's end, a row per day and value of ``key`` met so far.

    ``changes`` have date, key and measures; ``prior`` (key, measures) is where the first chapter goes on.
    """
    at: dict[date, list[Mapping[str, Any]]] = {}
    for change in changes:
        at.setdefault(change["date"], []).append(change)
    chapter = GOES_ON
    totals = {row[key]: {name: row[name] for name in measures} for row in prior}
    rows = []
    for day in days:
        if day.chapter != chapter:
            chapter, totals = day.chapter, {}
        for change in at.get(day.day, ()):
            total = totals.setdefault(change[key], dict.fromkeys(measures, 0))
            for name in measures:
                total[name] += change[name]
        rows += [{key: value, **total, **day.stamp} for value, total in sorted(totals.items())]
    return rows
