"""Staged tables as Spark frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.lake import record, staging
from permalake.lake.held import HeldDays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StagedFrames:
    """The tables that one attempt works on, as it sees them."""

    def __init__(self, settings: Settings, held: HeldDays) -> None:
        self._settings = settings
        self._held = held
        self._row = held.row

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a whole table: history as published when the attempt began, and what the attempt staged."""
        self._held.location(name)
        staging.bind(spark, self._settings, self._row.attempt_id)
        return spark.read.table(staging.full_name(self._row.attempt_id, self._row.network, name))

    def days(self, spark: SparkSession, name: str) -> DataFrame:
        """Return the rows of the attempt's days."""
        return self.table(spark, name).where(staging.span(self._row.start, self._row.end))

    def published(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a whole table as it was published when the attempt began."""
        with self._held.database.read() as connection:
            location = record.base_locations(connection, self._row.attempt_id)[name]
        return spark.read.format("iceberg").load(location)
