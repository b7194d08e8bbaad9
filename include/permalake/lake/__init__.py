"""The lake: staging, publishing and reading of days."""

from __future__ import annotations

from permalake.lake.attempt import Attempt
from permalake.lake.lake import Lake
from permalake.lake.publish import Publication
from permalake.lake.query import QueryLimits, QueryResult
from permalake.lake.status import DayStatus

__all__ = ["Attempt", "DayStatus", "Lake", "Publication", "QueryLimits", "QueryResult"]
