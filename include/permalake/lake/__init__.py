"""The lake: staging, publishing and reading of days."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Whoever queries needs none of what builds days, which loads PyIceberg and pandas.
_MODULES = {
    "Attempt": "lake.attempt",
    "Builds": "lake.builds",
    "Carries": "lake.carry",
    "CarryAttempt": "lake.carry",
    "DayStatus": "lake.status",
    "PinnedAttempt": "lake.pinned_attempt",
    "Publication": "lake.publish",
    "QueryLimits": "query_process",
    "QueryResult": "lake.query",
    "Reader": "lake.reader",
    "carried_until": "lake.status",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"permalake.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
