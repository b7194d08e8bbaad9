"""The lake: staging, publishing and reading of days."""

from __future__ import annotations

from permalake.lake.attempt import Attempt
from permalake.lake.builds import Builds
from permalake.lake.carry import Carries, CarryAttempt
from permalake.lake.pinned_attempt import PinnedAttempt
from permalake.lake.publish import Publication
from permalake.lake.query import QueryResult
from permalake.lake.reader import Reader
from permalake.lake.status import DayStatus, carried_until
from permalake.query_process import QueryLimits

__all__ = [
    "Attempt",
    "Builds",
    "Carries",
    "CarryAttempt",
    "DayStatus",
    "PinnedAttempt",
    "Publication",
    "QueryLimits",
    "QueryResult",
    "Reader",
    "carried_until",
]
