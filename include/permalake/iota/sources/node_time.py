"""Times of a node's milestones: days are found with as few calls as it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from pathlib import Path
from uuid import uuid4

from permalake.errors import PermalakeError
from permalake.iota.cone.source_records import MilestoneDay

_DAY = 86_400


class Timeline:
    """Times of milestones ``first``..``last``, which rise with the index.

    ``ask`` tells the time of one (unix s; None: not there); what it told is remembered in ``file``.
    """

    def __init__(self, ask: Callable[[int], int | None], first: int, last: int, file: Path):
        self._ask, self.first, self.last, self._file = ask, first, last, file
        self._known = _load(file)
        self._asked = False

    def at(self, index: int) -> int:
        """Time of a milestone (unix s)."""
        if index not in self._known:
            timestamp = self._ask(index)
            if timestamp is None:
                raise PermalakeError(
                    f"milestone {index}: milestone_gap: the node lacks it, though it claims to hold "
                    f"{self.first} to {self.last}"
                )
            self._known[index], self._asked = timestamp, True
        return self._known[index]

    def day(self, day: date) -> MilestoneDay | None:
        """Return the milestones of a UTC date; None if it has none. Takes some 2 log2(n) calls."""
        begin = _midnight(day)
        first = self.first_of(day)
        if first > self.last or self.at(first) >= begin + _DAY:
            return None
        return MilestoneDay(day, first, self._from(begin + _DAY, first) - 1)

    def first_of(self, day: date) -> int:
        """Return the first milestone of a UTC date or a later one; one more than the last if none is."""
        return self._from(_midnight(day), self.first)

    def _from(self, moment: int, lower: int) -> int:
        """Return the first milestone not before a time; one more than the last if there is none."""
        upper = self.last + 1
        for index, milestone_moment in self._known.items():
            if lower <= index <= self.last:
                if milestone_moment < moment:
                    lower = index + 1
                else:
                    upper = min(upper, index)
        while lower < upper:
            middle = (lower + upper) // 2
            if self.at(middle) < moment:
                lower = middle + 1
            else:
                upper = middle
        return lower

    def save(self) -> None:
        """Remember the node's answers."""
        if self._asked:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            scratch = self._file.with_name(f"{uuid4().hex}.scratch")
            scratch.write_text(json.dumps(self._known), "utf-8")
            scratch.replace(self._file)


def _midnight(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def _load(file: Path) -> dict[int, int]:
    try:
        return {int(index): int(time) for index, time in json.loads(file.read_text("utf-8")).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
