"""What every section of the settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section: unknown keys are errors, and nothing changes a value."""

    model_config = ConfigDict(extra="forbid", frozen=True)
