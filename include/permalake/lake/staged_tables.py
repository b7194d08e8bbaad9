"""What every attempt is: some days of a network, and its tables as they are staged for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts import Table
from permalake.lake import side_tables, staging
from permalake.lake.catalog import open_table
from permalake.lake.held import LeasedAttempt
from permalake.lake.side_tables import Addition
from permalake.lake.staged_state import StagedState
from permalake.lake.task_files import FileTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StagedTables:
    """The tables that one attempt works on, as it sees them.

    ``staged`` tells what is staged so far, and reads it without Spark.
    """

    def __init__(self, settings: Settings, held: LeasedAttempt, contracts: Mapping[str, Table]) -> None:
        row = held.row
        self.id = row.attempt_id
        self.network = row.network
        self.start = row.start
        self.end = row.end
        self.run_id = row.run_id
        self.staged = StagedState(held.database, row, contracts)
        self._settings = settings
        self._held = held
        self._database = held.database
        self._row = row
        self._contracts = contracts

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a whole table: history as published when the attempt began, and what it staged."""
        self._held.location(name)
        staging.bind(spark, self._settings, self.id)
        return spark.read.table(staging.full_name(self.id, self.network, name))

    def days(self, spark: SparkSession, name: str) -> DataFrame:
        """Return the rows of start..end."""
        return self.table(spark, name).where(staging.span(self.start, self.end))


class OpenStaging(StagedTables):
    """Tables that rows are still staged into."""

    @property
    def landing(self) -> str:
        """Folder for files that belong to this attempt alone."""
        return staging.landing(self._settings, self.id)

    def targets(self, contracts: Iterable[Table]) -> list[FileTarget]:
        """Return what tasks need to write files of some staged tables themselves."""
        held = self._held.locations()
        return [
            FileTarget.of(open_table(held[contract.name]), contract.name, contract.order)
            for contract in contracts
        ]

    def add(self, table: str, span: tuple[date, date], addition: Addition) -> None:
        """Add files of any days to a side table, seen by readers at once.

        ``addition`` is given the rows of the days of ``span`` as they are published, and returns the files
        with the days whose rows they replace. It is called again if another process published the table
        meanwhile.
        """
        self._held.location(table)
        side_tables.add(self._settings, self._database, self._row, table=table, span=span, addition=addition)
