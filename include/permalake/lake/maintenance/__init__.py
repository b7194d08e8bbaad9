"""Maintenance of the lake: compaction, expiry of the past, removal of needless files.

See ``docs/adr/0008-maintenance-beside-builds.md``.
"""

from __future__ import annotations

from permalake.lake.maintenance.commit import alone
from permalake.lake.maintenance.compact import compact, fragmented_tables
from permalake.lake.maintenance.history import attempts_to_keep
from permalake.lake.maintenance.limits import Limits, limits
from permalake.lake.maintenance.tidy import MaintenanceResult, clear_landings, networks_of, tidy, would_tidy

__all__ = [
    "Limits",
    "MaintenanceResult",
    "alone",
    "attempts_to_keep",
    "clear_landings",
    "compact",
    "fragmented_tables",
    "limits",
    "networks_of",
    "tidy",
    "would_tidy",
]
