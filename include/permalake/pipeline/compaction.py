"""The Spark job that compacts; what it did with each network is a row of the step ledger."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from permalake.config import Settings, load_settings
from permalake.contracts.namespaces import Namespaces
from permalake.contracts.steps import StepResult
from permalake.errors import line_of
from permalake.lake.database import Database
from permalake.lake.identity import open_database
from permalake.lake.maintenance.commit import Work, alone
from permalake.lake.maintenance.compact import compact, fragmented_tables
from permalake.lake.maintenance.tidy import MaintenanceResult
from permalake.lake.step_ledger import StepLedger
from permalake.pipeline.jobs import LOG, as_process
from permalake.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP = "compact"


class CompactionJob:
    """Compacts the fragmented tables of some networks."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces

    def __call__(self, argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
        """Compact every network that ``--network`` names."""
        parser = argparse.ArgumentParser(prog="lake_maintenance")
        parser.add_argument("--network", action="append", required=True, help="may be given several times")
        parser.add_argument("--run-id", required=True)
        given = parser.parse_args(argv)
        settings = load_settings()
        database = open_database(settings)
        spark = spark or session(f"lake_maintenance {' '.join(given.network)}")
        for network in given.network:
            self._recorded(spark, settings, database, network, given.run_id)

    def _recorded(
        self, spark: SparkSession, settings: Settings, database: Database, network: str, run_id: str
    ) -> None:
        ledger, today, began = StepLedger(database), datetime.now(UTC).date(), time.monotonic()
        key = ledger.start(network, run_id, STEP, (today, today))
        lines: list[str] = []
        result = StepResult("failed", reason="the process ended before the step did")
        try:
            with alone(settings, database, network, run_id) as work:
                self._compact(spark, work, lines)
            result = StepResult(log=tuple(lines), seconds=time.monotonic() - began)
        except Exception as error:
            result = StepResult("failed", log=tuple(lines), reason=line_of(error))
            raise
        finally:
            ledger.finish(key, result)

    def _compact(self, spark: SparkSession, work: Work, lines: list[str]) -> None:
        target, contracts = work.settings.lake.target_bytes, self._namespaces(work.network).tables
        for table in fragmented_tables(work.database, work.network, contracts, target):
            done = compact(spark, work, contracts[table], target)
            lines.append(str(MaintenanceResult.compacted(f"{work.network}.{table}", done)))
            LOG.info(lines[-1])

    def process(self) -> None:
        """Run as a process: a :class:`PermalakeError` is one line and an exit code."""
        as_process(self)
