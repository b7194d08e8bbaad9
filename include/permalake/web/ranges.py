"""The range of days that a page shows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime

from pydantic import BaseModel

from permalake.web.parameter_types import FormDate
from permalake.web.problems import bad_request

_DAYS_SHOWN = 365
FIRST_DAY = "1970-01-01"
"""The start of a range that leaves no earlier day out."""


class DayRange(BaseModel):
    """Parameters of a page over a range of days, both inclusive."""

    start: FormDate = None
    end: FormDate = None

    def of(self, days: Collection[date]) -> tuple[date, date]:
        """Return the first and the last day to show.

        What is not asked for follows from ``days``, those with figures: the range ends at the newest real day
        and begins a year before its end.

        Raises:
            ProblemError: 400 if the range ends before it begins.
        """
        last = self.end or newest_real(days) or self.start or date(1970, 1, 1)
        year_before = date.fromordinal(max(1, last.toordinal() - _DAYS_SHOWN + 1))
        first = self.start or max(min((day for day in days if day <= last), default=last), year_before)
        if first > last:
            raise bad_request(f"end: {last} lies before the start, {first}; exchange the two")
        return first, last


def newest_real(days: Collection[date]) -> date | None:
    """Return the newest day up to today, else the newest synthetic one; None without days."""
    today = datetime.now(UTC).date()
    return max((day for day in days if day <= today), default=max(days, default=None))
