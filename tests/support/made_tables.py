"""Decoded rows and base tables of days, written by Spark's tasks into a folder without a lake."""

from __future__ import annotations

from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.steps.table_writer import LANDED, MILESTONES, TableWriter
from permalake.iota.tables.base_tables import BASE_TABLES
from permalake.iota.tables.milestone_table import MILESTONE_TABLE
from permalake.lake.catalog import PROPERTIES
from permalake.lake.task_files import FileTarget
from permalake.pipeline.landing import Written
from support.iota_queries import queried


class MadeTables:
    """What tasks wrote into ``folder``."""

    def __init__(self, folder, chunk_size=250_000, v_byte_cost=None):
        targets = tuple(_target(name, folder) for name in BASE_TABLES)
        self.written = Written(LANDED)
        self.writer = TableWriter(targets, f"{folder}/landed", chunk_size, v_byte_cost, {})

    def frames(self, spark):
        """Every base table, and ``milestones``."""
        found = {name: self._frame(spark, name) for name in BASE_TABLES}
        rows = self.written.frame(spark, MILESTONES)
        return found | {"milestones": queried(spark, MILESTONE_TABLE, milestone_rows=rows)}

    def _frame(self, spark, name):
        files = [file.facts["path"] for file in self.written.files if file.table == name]
        schema = IOTA_TABLES[name].spark
        return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)


def _target(name, folder):
    contract = IOTA_TABLES[name]
    schema = contract.iceberg.model_dump_json()
    return FileTarget(name, f"{folder}/{name}", schema, PROPERTIES, 0, contract.order)
