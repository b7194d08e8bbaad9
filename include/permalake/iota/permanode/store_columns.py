"""Columns of lake tables as CQL holds them, for the rows of both of the permanode's schemas."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.contracts.cql import StoreTable


def tiny(value: Column) -> Column:
    """Return 0..255 as CQL's signed tinyint: 128 and above turn negative."""
    return F.when(value > 127, value - 256).otherwise(value).cast("tinyint")


def small(value: Column) -> Column:
    """Return 0..65535 as CQL's signed smallint."""
    return F.when(value > 32767, value - 65536).otherwise(value).cast("smallint")


def state_byte(value: Column) -> Column:
    """Return an inclusion state as a blob of one byte."""
    return F.unhex(F.lpad(F.hex(value), 2, "0"))


def shaped(frame: DataFrame, table: StoreTable, **computed: Column) -> DataFrame:
    """Return the contract's columns in order, cast.

    ``computed`` gives those that differ from the frame's. A null key column becomes ``''``.
    """
    columns = []
    for field in table.spark:
        value = computed.get(field.name, F.col(field.name))
        if field.name in table.key and table.columns[field.name] == "text":
            value = F.coalesce(value, F.lit(""))
        columns.append(value.cast(field.dataType).alias(field.name))
    return frame.select(*columns)
