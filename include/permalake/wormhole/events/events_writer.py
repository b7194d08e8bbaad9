"""Days of Wormhole events into the Bigtable tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from permalake.config import Settings
from permalake.intervals import dates
from permalake.lake.day_rows import DayRows
from permalake.pipeline.day_queries import duckdb_over
from permalake.spark.submit import is_local
from permalake.stores import bigtable
from permalake.stores.obsolete_rows import stale_keys
from permalake.stores.pinned import Pinned
from permalake.wormhole.events.event_cells import COLUMNS, EVENTS, QUERIES, event_rows
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
            if version == "v1":
                bigtable.write(event_rows_v1(today, self._reference), self._settings, table)
            elif is_local():
                self._send(batch, table)
            else:
                bigtable.write(event_rows(today), self._settings, table)

    def _send(self, batch: StoreBatch, table: str) -> None:
        """Write the rows of table v2 as DuckDB finds them in the files of the days."""
        first, last = min(batch.dates), max(batch.dates)
        others = set(dates(first, last)) - set(batch.dates)

        def rows(name: str) -> ds.Dataset:
            return DayRows(batch.state[name], first, last, others).scan()

        with duckdb_over(QUERIES, rows) as duckdb:
            found = duckdb.batches(QUERIES.tables[EVENTS])
            bigtable.send((one.rename_columns(COLUMNS) for one in found), self._settings, table)

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
