"""Frames out of plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def of_rows(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str | StructType) -> DataFrame:
    """Return rows (values in the schema's order) as a frame that Spark plans with.

    They go through Arrow: of a list of tuples, even of an empty one, PySpark makes an RDD that a Python
    worker has to read, and Spark cannot fold away what an empty RDD takes part in.
    """
    struct = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    fields = to_arrow_schema(cast(StructType, struct))
    columns = zip(*rows, strict=True) if rows else ((),) * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=fields))
