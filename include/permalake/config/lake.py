"""The section of the lake."""

from __future__ import annotations

from pathlib import Path

from pydantic import (
    Field,
    SecretStr,
    field_validator,
)

from permalake.config.section import Section
from permalake.errors import ConfigError
from permalake.paths import HOME


class LakeSettings(Section):
    """``[lake]``: the warehouse, the catalog database, and what maintenance keeps."""

    warehouse: str = str(HOME / "warehouse")
    """Folder or bucket of the tables; without it, ``PERMALAKE_HOME/warehouse``."""
    catalog: SecretStr | None = None
    retention_days: int = Field(default=30, ge=1)
    """Days of history that ``--as-of`` can always read."""
    abandoned_days: int = Field(default=7, ge=1)
    """Days after which a staging that nobody published or continued is removed."""
    orphan_hours: int = Field(default=24, ge=1)
    """Age below which a file is never removed as an orphan."""
    target_file_mib: int = Field(default=128, ge=1)
    """Target size of compacted files, in MiB."""

    @property
    def target_bytes(self) -> int:
        """``target_file_mib`` in bytes."""
        return self.target_file_mib << 20

    @field_validator("warehouse")
    @classmethod
    def _absolute(cls, value: str) -> str:
        return value.rstrip("/") if "://" in value else str(Path(value).expanduser().resolve())

    @property
    def catalog_uri(self) -> str:
        """SQLAlchemy URI of the catalog; SQLite in the warehouse unless configured."""
        if self.catalog:
            return self.catalog.get_secret_value()
        if "://" in self.warehouse:
            raise ConfigError("lake.catalog: a warehouse on object storage needs a catalog database URI")
        return f"sqlite:///{self.warehouse}/catalog.db"
