"""The range of days that a page opens with."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from permalake.web.problems import ProblemError
from permalake.web.ranges import DayRange, newest_real

TODAY = datetime.now(UTC).date()
SYNTHETIC = date(2100, 1, 1)


def test_a_page_opens_on_the_year_up_to_the_newest_real_day() -> None:
    recent = TODAY - timedelta(days=3)
    days = [date(2019, 5, 1), recent, SYNTHETIC]
    assert DayRange().of(days) == (recent - timedelta(days=364), recent)
    assert DayRange().of([recent, SYNTHETIC]) == (recent, recent)


def test_synthetic_days_are_shown_where_there_are_no_others_or_they_are_asked_for() -> None:
    assert DayRange().of([SYNTHETIC]) == (SYNTHETIC, SYNTHETIC)
    assert newest_real([SYNTHETIC]) == SYNTHETIC
    assert DayRange(end=SYNTHETIC).of([TODAY, SYNTHETIC])[1] == SYNTHETIC
    assert newest_real([]) is None


def test_a_lake_without_days_has_a_range() -> None:
    assert DayRange().of([]) == (date(1970, 1, 1), date(1970, 1, 1))
    assert DayRange(start=TODAY).of([]) == (TODAY, TODAY)


@pytest.mark.parametrize("end", [date.min, date(1, 6, 1), date.max])
def test_any_date_is_a_range(end: date) -> None:
    first, last = DayRange(end=end).of([TODAY])
    assert first <= last == end


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ProblemError, match="before the start"):
        DayRange(start=TODAY, end=TODAY - timedelta(days=1)).of([TODAY])
