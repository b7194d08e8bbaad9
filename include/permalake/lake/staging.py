"""Spark's side of an attempt: frames into staged tables, and staged tables as frames."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.spark.catalog_database import bind_catalog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LANDINGS = "_attempts"
"""Folder of the warehouse with a folder for each attempt, of what its steps land."""


def landing(settings: Settings, attempt_id: str) -> str:
    """Return the folder for files that belong to one attempt alone."""
    return f"{settings.lake.warehouse}/{LANDINGS}/{attempt_id}"


def bind(spark: SparkSession, settings: Settings, catalog: str) -> None:
    """Make the pointers under ``catalog`` readable and writable as Spark catalog of that name."""
    bind_catalog(spark, settings, catalog)


def full_name(catalog: str, network: str, table: str) -> str:
    """Return a table's name in Spark; network names may hold dashes."""
    return f"{catalog}.`{network}`.{table}"


def shape(frame: DataFrame, contract: Table, without: tuple[str, ...] = ()) -> DataFrame:
    """Return the frame in the contract's columns, order and types.

    Raises:
        PermalakeError: if columns are missing; it names them.
    """
    from pyspark.sql import functions as f

    fields = [field for field in contract.spark.fields if field.name not in without]
    lacking = [field.name for field in fields if field.name not in frame.columns]
    if lacking:
        raise PermalakeError(f"{contract.name}: the frame lacks column {', '.join(lacking)}")
    return frame.select(*[f.col(field.name).cast(field.dataType).alias(field.name) for field in fields])


def arrange(frame: DataFrame, contract: Table) -> DataFrame:
    """Gather rows by day in few full files, sorted as the contract has it."""
    return _gathered(frame).sortWithinPartitions("date", *[name for name in contract.order if name != "date"])


def _gathered(frame: DataFrame) -> DataFrame:
    """Return the rows gathered by day.

    Where Spark plans adaptively, it splits a day that is too large for one file and joins days that are too
    small for a task of their own; elsewhere it would ignore the hint.
    """
    spark = frame.sparkSession
    if spark.conf.get("spark.sql.adaptive.enabled") == "true":
        return spark.sql("SELECT /*+ REBALANCE(date) */ * FROM {frame}", frame=frame)
    return frame.repartition("date")


def span(start: date, end: date) -> Column:
    """Return the condition for rows of start..end, both inclusive."""
    from pyspark.sql import functions as f

    return f.col("date").between(f.lit(start), f.lit(end))


def replace(frame: DataFrame, contract: Table, name: str, start: date, end: date) -> None:
    """Replace the rows of start..end in the table ``name`` by those of ``frame``; an empty frame deletes."""
    arrange(frame, contract).writeTo(name).overwrite(span(start, end))
