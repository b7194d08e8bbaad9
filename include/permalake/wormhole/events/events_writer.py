"""Days of Wormhole events into the Bigtable tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts.namespaces import is_live
from permalake.intervals import dates
from permalake.lake.catalog import table_of
from permalake.lake.counts import is_readable
from permalake.lake.day_rows import DayRows
from permalake.pipeline.day_queries import QueriesOverFiles
from permalake.spark.tasks import TaskShare, in_tasks
from permalake.stores import bigtable
from permalake.stores.obsolete_rows import stale_keys
from permalake.stores.pinned import Pinned
from permalake.wormhole.events.event_cells import COLUMNS, EVENTS, QUERIES
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
            else:
                self._send(batch, table)

    def _send(self, batch: StoreBatch, table: str) -> None:
        """Write the rows of table v2, a stretch of days in each task."""

        def queries(days: Sequence[date]) -> QueriesOverFiles:
            others = set(dates(days[0], days[-1])) - set(days)
            return QUERIES.over(lambda name: DayRows(batch.state[name], days[0], days[-1], others).scan())

        send = bigtable.sender(self._settings, table)

        def work(sent: QueriesOverFiles, share: TaskShare) -> int:
            with sent.engine(share) as engine:
                rows = engine.batches(sent.tables[EVENTS])
                return send(batch.rename_columns(COLUMNS) for batch in rows)

        at_once = self._spark.sparkContext.defaultParallelism
        in_tasks(self._spark, work, [queries(days) for days in _stretches(sorted(batch.dates), at_once)])

    def _gone(self, version: str, batch: StoreBatch, today: Pinned) -> DataFrame | None:
        before = [
            _keys(version, Pinned(self._spark, state, dates)[_PUBLICATION])
            for state, dates in batch.before()
            if _PUBLICATION in state and not _is_lost(state[_PUBLICATION])
        ]
        return stale_keys(
            ["row_key"],
            before,
            _keys(version, today[_PUBLICATION]),
            lambda: _keys(version, Pinned(self._spark, batch.state)[_PUBLICATION]),
        )


def _is_lost(location: str) -> bool:
    """Return whether a table is of a live head that was damaged: nobody knows what rows it had."""
    namespace, _ = table_of(location)
    return is_live(namespace) and not is_readable(location)


def _stretches(days: Sequence[date], most: int) -> list[Sequence[date]]:
    """Return at most so many stretches of days in order."""
    length = -(-len(days) // most) or 1
    return [days[first : first + length] for first in range(0, len(days), length)]


def _keys(version: str, publication: DataFrame) -> DataFrame:
    return publication.select("row_key" if version == "v2" else row_key_v1().alias("row_key"))
