"""The ages at which maintenance may touch something."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from permalake.config.lake import LakeSettings


@dataclass(frozen=True)
class Limits:
    """Moments, UTC, of one maintenance.

    ``history``: states that were current then or later can still be read; ``abandoned``: what unfinished runs
    staged, and not touched since, is given up; ``young``: files written later are left alone, whoever needs
    them.
    """

    history: datetime
    abandoned: datetime
    young: datetime


def limits(lake: LakeSettings, now: datetime | None = None) -> Limits:
    """Return the limits that the configuration sets, as seen at ``now``."""
    moment = now or datetime.now(UTC)
    return Limits(
        history=moment - timedelta(days=lake.retention_days),
        abandoned=moment - timedelta(days=lake.abandoned_days),
        young=moment - timedelta(hours=lake.orphan_hours),
    )
