"""Results of queries over the tables of days, as frames.

Where the driver is the executor, DuckDB finds them in the tables' files; on a cluster Spark does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.pipeline.day_queries import DayQueries, duckdb_over, spark_over
from permalake.spark.submit import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class DayTables:
    """The rows of some days of each table, for this process and for Spark's tasks."""

    spark: SparkSession
    rows: Callable[[str], pa.Table | ds.Dataset]
    frame: Callable[[str], DataFrame]


def query_frames(
    tables: DayTables, queries: DayQueries, results: Mapping[str, pa.Schema]
) -> dict[str, DataFrame]:
    """Return the rows of each query, with these columns and types; no query reads another."""
    if is_local():
        with duckdb_over(queries, tables.rows) as duckdb:
            found = {name: duckdb.table(query) for name, query in queries.tables.items()}
        rows = {name: found[name].select(schema.names).cast(schema) for name, schema in results.items()}
        return {name: tables.spark.createDataFrame(table) for name, table in rows.items()}
    with spark_over(queries, lambda: tables.spark, lambda _, name: tables.frame(name)) as engine:
        for name in sorted(queries.read(queries.tables)):
            engine.open(name)
        frames = {name: engine.frame(query) for name, query in queries.tables.items()}
    return {name: _as(frames[name], schema) for name, schema in results.items()}


def _as(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    return frame.select(*(frame[one.name].cast(one.dataType) for one in from_arrow_schema(schema)))
