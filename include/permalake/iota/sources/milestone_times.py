"""From milestone times to days: which milestones belong to a UTC date, and what does not fit.

Indexes and times rise together. A single milestone may contradict the others (a flipped bit, a wrong unit);
it must not move its neighbours' days, so it is told apart before days are counted, and the day that it
belongs to is refused with its number.
"""

from __future__ import annotations

import time as clock
from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt

from permalake.iota.cone.source_records import STEP_BACK, MilestoneDay, utc_date

I64 = npt.NDArray[np.int64]
_DAY = 86_400
_LAST_TIME = 2**32 - 1
# There is at most a milestone a second; some slack for networks that were reset.
_SLACK = 100_000
_GAPS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Span:
    """First and last milestone index and time (unix s)."""

    first: int
    last: int
    earliest: int
    latest: int

    def join(self, other: Span) -> Span:
        """Return the span of both."""
        return Span(
            min(self.first, other.first),
            max(self.last, other.last),
            min(self.earliest, other.earliest),
            max(self.latest, other.latest),
        )

    @property
    def first_date(self) -> date:
        """The date of its earliest milestone."""
        return utc_date(self.earliest)

    @property
    def last_date(self) -> date:
        """The date of its latest milestone."""
        return utc_date(self.latest)

    def overlaps(self, start: date, end: date) -> bool:
        """Return whether a milestone of the dates ``start`` to ``end`` may lie in it, or of the day after.

        That day tells whether milestones are absent at the end of ``end``.
        """
        return utc_date(self.earliest) <= end + timedelta(days=1) and utc_date(self.latest) >= start


def span_of(index: I64, time: I64) -> Span | None:
    """Return what the milestones that fit together span; None when there is none."""
    index, time, fits = _sorted(index, time)
    if not fits.any():
        return None
    index, time = index[fits], time[fits]
    return Span(int(index[0]), int(index[-1]), int(time.min()), int(time.max()))


def days_of(index: I64, time: I64, start: date, end: date) -> list[MilestoneDay]:
    """Return the days of ``start`` to ``end`` that have milestones, in order.

    Indexes that are absent between the milestones of two dates in a row are gaps of both.

    Args:
        index: Milestone indexes, in any order, possibly repeated; of the day after ``end`` too.
        time: Their times (unix s).
        start: First date.
        end: Last date, inclusive.
    """
    index, time, fits = _sorted(index, time)
    faults: dict[date, str] = {}
    for at in np.flatnonzero(~fits).tolist():
        line = f"milestone {index[at]}: milestone_time: its time {time[at]} does not fit its index"
        for day in _days_touched(index, time, fits, at):
            faults.setdefault(day, line)
    index, time = index[fits], time[fits]
    number = time // _DAY
    days = []
    for ordinal in np.unique(number).tolist():
        day = utc_date(ordinal * _DAY)
        if start <= day <= end:
            day_indexes = np.unique(index[number == ordinal])
            first, last = int(day_indexes[0]), int(day_indexes[-1])
            row = _with_neighbours(index, number, day_indexes, ordinal)
            days.append(MilestoneDay(day, first, last, _gaps(row), faults.get(day)))
    timed_days = {day.date for day in days}
    for day in sorted(faults.keys() - timed_days):
        if start <= day <= end:
            days.append(MilestoneDay(day, 0, -1, fault=faults[day]))
    days.sort(key=lambda day: day.date)
    return [replace(day, fault=day.fault or _misdated(day, index, time)) for day in days]


def _misdated(day: MilestoneDay, index: I64, time: I64) -> str | None:
    """Return that a milestone amid those of a day has a time of another day; None if those are absent.

    ``index`` rises; ``time`` has the time of each.
    """
    for first, last in day.gaps:
        at = int(np.searchsorted(index, first))
        if at < len(index) and index[at] <= last:
            own_date = utc_date(int(time[at]))
            return (
                f"milestone {index[at]}: milestone_time: its time {time[at]} is of {own_date}, "
                f"between milestones of {day.date}"
            )
    return None


def _with_neighbours(index: I64, number: I64, of_day: I64, ordinal: int) -> I64:
    """Return the indexes of a day between those beside them that belong to the date before and the next one.

    Milestones of other dates say nothing: a source may lack whole days.
    """
    begin, end = int(np.searchsorted(index, of_day[0])), int(np.searchsorted(index, of_day[-1], "right"))
    before, after = slice(max(begin - 1, 0), begin), slice(end, end + 1)
    return np.concatenate(
        [
            index[before][number[before] == ordinal - 1],
            of_day,
            index[after][number[after] == ordinal + 1],
        ]
    )


def _gaps(indexes: I64) -> tuple[tuple[int, int], ...]:
    at = np.flatnonzero(np.diff(indexes) > 1)[:_GAPS_SHOWN]
    return tuple((int(indexes[i]) + 1, int(indexes[i + 1]) - 1) for i in at.tolist())


def _sorted(index: I64, time: I64) -> tuple[I64, I64, npt.NDArray[np.bool_]]:
    """Return the distinct milestones by index, and which of them fit together."""
    pairs = np.unique(np.stack([index, time], axis=1), axis=0) if len(index) else np.zeros((0, 2), np.int64)
    index, time = pairs[:, 0], pairs[:, 1]
    return index, time, _fits(index, time)


def _fits(index: I64, time: I64) -> npt.NDArray[np.bool_]:
    """Return which milestones belong to the longest series in which index and time rise together.

    One next to it that is off by a small step back belongs to it too. None is of the future, unless most are:
    they are of a synthetic network.
    """
    fits = (time >= 0) & (time <= _LAST_TIME)
    ahead = time > int(clock.time()) + _DAY
    if 2 * int(ahead.sum()) <= len(time):
        fits &= ~ahead
    rows = np.flatnonzero(fits)
    if not len(rows):
        return fits
    if (np.diff(time[rows]) < 0).any() or (np.diff(index[rows]) == 0).any():
        series = _longest_series(index[rows], time[rows])
        fits[:] = False
        fits[rows[series]] = True
        _add_small_steps(index, time, fits)
    _drop_far_ones(index, time, fits)
    return fits


def _longest_series(index: I64, time: I64) -> list[int]:
    """Return the rows of the longest series with rising index and no step back in time."""
    tails: list[int] = []
    ends: list[int] = []
    before = [-1] * len(time)
    at = 0
    while at < len(time):
        same = at
        while same < len(time) and index[same] == index[at]:
            same += 1
        # The rows of one index go last to first, so that no two of them join one series.
        for row in range(same - 1, at - 1, -1):
            place = bisect_right(tails, int(time[row]))
            before[row] = ends[place - 1] if place else -1
            if place == len(tails):
                tails.append(int(time[row]))
                ends.append(row)
            else:
                tails[place], ends[place] = int(time[row]), row
        at = same
    series = []
    row = ends[-1]
    while row >= 0:
        series.append(row)
        row = before[row]
    return series[::-1]


def _add_small_steps(index: I64, time: I64, fits: npt.NDArray[np.bool_]) -> None:
    times = dict(zip(index[fits].tolist(), time[fits].tolist(), strict=True))
    for row in np.flatnonzero(~fits).tolist():
        milestone = int(index[row])
        near = [times[i] for i in (milestone - 1, milestone + 1) if i in times]
        if milestone not in times and near and min(abs(int(time[row]) - t) for t in near) <= STEP_BACK:
            fits[row] = True
            times[milestone] = int(time[row])


def _drop_far_ones(index: I64, time: I64, fits: npt.NDArray[np.bool_]) -> None:
    """Keep the side with more milestones where an index runs ahead of any clock."""
    while True:
        rows = np.flatnonzero(fits)
        ahead = np.diff(index[rows]) - np.maximum(np.diff(time[rows]), 0)
        far = np.flatnonzero(ahead > _SLACK)
        if not len(far):
            return
        cut = int(far[0]) + 1
        fits[rows[cut:] if cut >= len(rows) - cut else rows[:cut]] = False


def _days_touched(index: I64, time: I64, fits: npt.NDArray[np.bool_], at: int) -> set[date]:
    """Return the days of which a milestone that does not fit may be part.

    Those of its neighbours by index when it is missing between them, else that of its own time.
    """
    fitting = index[fits]
    place = int(np.searchsorted(fitting, index[at]))
    is_known = place < len(fitting) and fitting[place] == index[at]
    times = time[fits]
    near = {
        utc_date(int(times[i]))
        for i, expected in ((place - 1, index[at] - 1), (place, index[at] + 1))
        if 0 <= i < len(fitting) and fitting[i] == expected
    }
    if near and not is_known:
        return near
    for unit in (1, 1_000):  # milliseconds are the likeliest mistake
        if 0 <= int(time[at]) // unit <= _LAST_TIME:
            return {utc_date(int(time[at]) // unit)}
    return set()
