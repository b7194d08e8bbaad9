"""Days of Wormhole events into the Bigtable tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.stores import bigtable
from permalake.stores.obsolete_rows import stale_keys
from permalake.stores.pinned import Pinned
from permalake.wormhole.events.event_cells import event_rows
from permalake.wormhole.events.families import tables_of
from permalake.wormhole.events.signature_cells import event_rows_v1, row_key_v1

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from permalake.stores.batch import StoreBatch

_PUBLICATION = "message_publication"


class BigtableDays:
    """The writer of batches of days into the configured tables."""

    def __init__(self, spark: SparkSession, settings: Settings, network: str) -> None:  # noqa: ARG002
        self._spark = spark
        self._settings = settings.bigtable
        self._reference = settings.wormhole.reference if settings.wormhole else None
        self._tables = tables_of(settings.bigtable)

    def recover(self, begun: Sequence[date], micros: int) -> None:
        """Do nothing: rows depend on their own day alone."""

    def write(self, batch: StoreBatch) -> None:
        """Delete events that are no longer published, then write the events of the days."""
        today = Pinned(self._spark, batch.state, batch.dates)
        for version, table in self._tables.items():
            gone = self._gone(version, batch, today)
            if gone is not None:
                bigtable.delete(gone, self._settings, table)
            rows = event_rows(today) if version == "v2" else event_rows_v1(today, self._reference)
            bigtable.write(rows, self._settings, table)

    def _gone(self, version: str, batch: StoreBatch, today: Pinned) -> DataFrame | None:
        before = [
            _keys(version, Pinned(self._spark, state, dates)[_PUBLICATION]) for state, dates in batch.before()
        ]
        return stale_keys(
            ["row_key"],
            before,
            _keys(version, today[_PUBLICATION]),
            lambda: _keys(version, Pinned(self._spark, batch.state)[_PUBLICATION]),
        )


def _keys(version: str, publication: DataFrame) -> DataFrame:
    return publication.select("row_key" if version == "v2" else row_key_v1().alias("row_key"))
