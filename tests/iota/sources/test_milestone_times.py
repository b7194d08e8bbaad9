"""Which milestones belong to a day."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from permalake.iota.cone.source_records import MilestoneDay, utc_date
from permalake.iota.sources.milestone_times import days_of

MIDNIGHT = 86_400 * 18_000
TODAY = utc_date(MIDNIGHT)
EVE = TODAY - timedelta(days=1)


@pytest.mark.parametrize("back", [1, 5])
def test_a_time_that_steps_back_over_midnight_tears_no_day(back):
    index = np.arange(1, 41)
    time = MIDNIGHT + 10 * (index - 20)
    time[20 + back] = MIDNIGHT - 2  # milestone 21 + back, after others of the new day
    whole = [MilestoneDay(EVE, 1, 19), MilestoneDay(TODAY, 20, 40)]
    assert days_of(index, time, EVE, TODAY) == whole
    assert days_of(index, time, EVE, EVE) == whole[:1]
    assert days_of(index, time, TODAY, TODAY) == whole[1:]


def test_a_milestone_that_is_absent_is_a_gap_all_the_same():
    index = np.delete(np.arange(1, 41), 25)
    time = MIDNIGHT + 10 * (index - 20)
    (day,) = days_of(index, time, TODAY, TODAY)
    assert day.gaps == ((26, 26),)
