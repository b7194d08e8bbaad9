"""Which milestones belong to a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from permalake.iota.cone.source_records import utc_date
from permalake.iota.cone.verdict import refused_days
from permalake.iota.sources.milestone_times import days_of

MIDNIGHT = 86_400 * 18_000
TODAY = utc_date(MIDNIGHT)


def test_a_time_over_midnight_takes_no_other_milestone_along() -> None:
    index = np.arange(1, 41)
    time = MIDNIGHT + 86_400 - 10 * (41 - index)
    time[20] = MIDNIGHT + 86_400
    (day,) = days_of(index, time, TODAY, TODAY)
    assert (day.first, day.last, day.gaps) == (1, 40, ((21, 21),))
    line = f"milestone 21: milestone_time: its time {time[20]} is of {TODAY + timedelta(days=1)}"
    assert refused_days([], [day]) == {TODAY: f"{line}, between milestones of {TODAY}"}


def test_a_milestone_that_is_absent_is_a_gap_all_the_same() -> None:
    index = np.delete(np.arange(1, 41), 25)
    time = MIDNIGHT + 10 * (index - 20)
    (day,) = days_of(index, time, TODAY, TODAY)
    assert (day.gaps, day.fault) == (((26, 26),), None)


def test_milestones_that_are_absent_between_two_days_are_a_gap_of_both() -> None:
    index = np.delete(np.arange(1, 41), [18, 19, 20])
    time = MIDNIGHT + 86_400 + 10 * (index - 20)
    tomorrow = TODAY + timedelta(days=1)
    today, after = days_of(index, time, TODAY, tomorrow)
    assert (today.last, after.first) == (18, 22)
    assert today.gaps == after.gaps == ((19, 21),)
    assert days_of(index, time, TODAY, TODAY) == [today]
    time[index > 20] += 86_400
    assert [day.gaps for day in days_of(index, time, TODAY, tomorrow + timedelta(days=1))] == [(), ()]


def test_a_milestone_of_the_future_fits_only_among_others_of_the_future() -> None:
    later = datetime.now(UTC).date() + timedelta(days=400)
    index = np.arange(1, 41)
    time = MIDNIGHT + 10 * index
    ahead = 86_400 * (later - utc_date(0)).days + 10 * index
    (made_up,) = days_of(index, ahead, later, later)
    assert (made_up.first, made_up.last, made_up.gaps, made_up.fault) == (1, 40, (), None)
    time[39] = ahead[39]
    (day,) = days_of(index, time, TODAY, later)
    assert day.last == 39
    assert "milestone 40: milestone_time" in day.fault
