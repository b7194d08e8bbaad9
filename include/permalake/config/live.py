"""Section ``[live]``."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from permalake.config.section import Section


class LiveSettings(Section):
    """``[live]``: how a network is followed between the days that are built."""

    poll_seconds: float = Field(default=2.0, gt=0, le=3600)
    """Seconds until a source that has nothing new is asked again."""
    batch_milestones: int = Field(default=64, ge=1, le=10_000)
    """How many milestones are read, proven and added at once."""
    days: int = Field(default=2, ge=1, le=31)
    """Days, the newest included, that a head may hold; what is older and unpublished leaves it."""
    attempts: int = Field(default=20, ge=1)
    """Batches that may fail one after the other until the run ends with the last reason."""
    max_lag_seconds: float = Field(default=600.0, gt=0)
    """An alert is sent once the last milestone or VAA has been older than that for as long again."""
    walk_seconds: float = Field(default=5.0, ge=0, le=60)
    """How long a walk over what no milestone references yet may take, from an IOTA node's tips; 0: none."""
    provisional_seconds: int = Field(default=86_400, ge=2, le=31_536_000)
    """How long rows of an IOTA head stay in Cassandra where no published day takes their place."""
    spy: str | None = None
    """A guardian's spy as HOST:PORT, or https://HOST:PORT, that gives VAAs in place of Wormhole's source."""

    @field_validator("spy")
    @classmethod
    def _names_a_port(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"(https://)?[^/\s]+:[0-9]{1,5}", value):
            raise ValueError("not HOST:PORT or https://HOST:PORT, such as 127.0.0.1:7073")
        return value
