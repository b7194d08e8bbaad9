"""Bigtable as the store of Wormhole events. Loads neither Spark nor Google's client before they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.config.stores import BigtableSettings
from permalake.stores.batch import NoteLoss
from permalake.wormhole.events.families import FAMILIES, FAMILIES_V1, tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from permalake.stores.batch import StoreWriter


class BigtableStore:
    """The event tables, version 2 and version 1."""

    name = "bigtable"

    def configured(self, settings: Settings) -> bool:
        """Return whether a table is configured."""
        return bool(tables_of(settings.bigtable))

    def ensure(self, settings: Settings, network: str, note_loss: NoteLoss) -> None:  # noqa: ARG002
        """Create missing tables and families; ``note_loss`` first, if a table is missing."""
        ensure_tables(settings.bigtable, note_loss)

    def dataset(self, settings: Settings, network: str) -> tuple[str, str]:  # noqa: ARG002
        """Return the project and the table of version 2."""
        bigtable = settings.bigtable
        return f"bigtable://{bigtable.project}", f"{bigtable.instance}.{bigtable.table}"

    def jars(self) -> tuple[str, ...]:
        """Return nothing: rows are sent by Google's client."""
        return ()

    def writer(self, spark: SparkSession, settings: Settings, network: str) -> StoreWriter:
        """Return the writer of both tables."""
        from permalake.wormhole.events.events_writer import BigtableDays

        return BigtableDays(spark, settings, network)


def ensure_tables(settings: BigtableSettings, note_loss: NoteLoss = lambda: None) -> None:
    """Create missing tables and families; ``note_loss`` is called first, if a table is missing."""
    from permalake.stores import bigtable

    families = {"v2": [family.name for family in FAMILIES], "v1": list(FAMILIES_V1)}
    tables = tables_of(settings)
    if not all(bigtable.has_table(settings, name) for name in tables.values()):
        note_loss()
    for version, name in tables.items():
        bigtable.ensure_table(settings, name, families[version])
