"""Carried figures: the beginnings of histories, and sums up to each day's end.

A day continues from the day before it in the lake. Where milestones are missing between them, the history is
cut: a new chapter begins, whose figures count from its first milestone. This module is plain Python
over a few numbers per day, which queries have counted before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from permalake.contracts.rows import Row

CONTINUED = 0
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Ending:
    """The state that later days continue from.

    ``end_ms`` is the day's last milestone, ``since_milestone`` where its figures count from, ``checkpoint``
    the date from which on ``address_balances`` holds every address, ``fingerprint`` that of their state, and
    ``storage_deposit`` that of all unspent outputs (None: not known).
    """

    day: date
    end_ms: int
    since_milestone: int | None
    checkpoint: date
    fingerprint: int = 0
    storage_deposit: int | None = None

    @property
    def totals(self) -> Row:
        """The columns of ``ledger_totals`` that later days compare."""
        return {
            "date": self.day,
            "since_milestone": self.since_milestone,
            "storage_deposit": self.storage_deposit,
        }


@dataclass(frozen=True, slots=True)
class Chained:
    """A day with milestones, its last milestone and its chapter.

    Chapter :data:`CONTINUED` continues the state before the range.
    """

    day: date
    end_ms: int
    chapter: int
    since_milestone: int | None
    checkpoint: date

    @property
    def stamp(self) -> Row:
        """Columns that every row of a carried table has of its day."""
        return {"since_milestone": self.since_milestone, "date": self.day}


def chained(days: Iterable[tuple[date, int, int]], before: Ending | None) -> list[Chained]:
    """Return days given as (date, start_ms, end_ms), in order, with their chapters.

    ``before`` is the end of the day before them in the lake. The first day of a chapter or of a month is a
    checkpoint.
    """
    chain: list[Chained] = []
    last, chapter = before, CONTINUED
    for day, start_ms, end_ms in days:
        continues = last is not None and last.end_ms + 1 == start_ms
        since = last.since_milestone if last and continues else start_ms
        in_month = last is not None and (last.day.year, last.day.month) == (day.year, day.month)
        checkpoint = last.checkpoint if last and continues and in_month else day
        chapter += not continues
        chain.append(Chained(day, end_ms, chapter, since, checkpoint))
        last = Ending(day, end_ms, since, checkpoint)
    return chain


def running(
    days: Sequence[Chained], key: str, measures: Sequence[str], changes: Rows, prior: Rows
) -> list[Row]:
    """Return sums of ``measures`` up to each day's end: a row per day and value of ``key`` met so far.

    ``changes`` have date, key and measures; ``prior`` (key, measures) is where the first chapter continues.
    """
    at: dict[date, list[Mapping[str, Any]]] = {}
    for change in changes:
        at.setdefault(change["date"], []).append(change)
    chapter = CONTINUED
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
