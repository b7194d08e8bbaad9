"""The same queries over large tables, in Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import cached_property
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.contracts.sql_functions import SqlFunction
from permalake.engine.protocol import PREVIOUS, VIOLATIONS, Check

Frame = Callable[[SparkSession, str], DataFrame]
_NUMBERS = count(1)


class SparkEngine:
    """Temporary views of a session, under names that no other audit uses.

    ``spark`` gives the session when it is first needed. ``table`` returns the audited rows of a table,
    ``previous`` those of the latest day before.
    """

    def __init__(
        self, spark: Callable[[], SparkSession], table: Frame, previous: Frame | None = None
    ) -> None:
        self._session = spark
        self._table = table
        self._previous = previous
        self._prefix = f"audit_{next(_NUMBERS)}_"
        self._frames: dict[str, DataFrame] = {}
        self._kept: list[DataFrame] = []

    @cached_property
    def _spark(self) -> SparkSession:
        return self._session()

    def define(self, function: SqlFunction) -> None:
        """Make a function known to queries."""
        wanted = function.work

        def work(*columns: pa.Array) -> pa.Array:  # Spark tells kinds of functions by such a signature
            return wanted(*columns)

        given = F.arrow_udf(work, returnType=function.gives)  # type: ignore[call-overload]
        self._spark.udf.register(function.name, given)

    def open(self, name: str) -> None:
        """Make a table known by name."""
        table = name.removeprefix(PREVIOUS)
        if name == table:
            rows = self._table(self._spark, name)
        elif self._previous is not None:
            rows = self._previous(self._spark, table)
        else:
            rows = self._table(self._spark, table).limit(0)
        self._view(name, rows)

    def put(self, name: str, rows: pa.Table) -> None:
        """Make rows known by name."""
        self._view(name, self._spark.createDataFrame(rows))

    def keep(self, name: str, query: str, check: Check | None = None, schema: pa.Schema = VIOLATIONS) -> None:
        """Make the rows of a query known by name, or those that ``check`` makes of them; computed once."""
        rows = self.frame(query)
        if check is not None:
            rows = rows.mapInArrow(check, from_arrow_schema(schema))
        self._kept.append(rows.persist())
        self._view(name, rows)

    def types(self, name: str) -> dict[str, str]:
        """Return the columns of a known table with their types."""
        return {field.name: field.dataType.simpleString() for field in self._frames[name].schema}

    def frame(self, query: str) -> DataFrame:
        """Return a query as a frame."""

        def named(found: re.Match[str]) -> str:
            word, name = found.groups()
            return f"{word} {self._prefix}{name}" if name in self._frames else found.group()

        return self._spark.sql(re.sub(r"\b(FROM|JOIN)\s+([a-z_]\w*)", named, query))

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        return [row.asDict() for row in self.frame(query).collect()]

    def narrowed(self, start: date, end: date) -> SparkEngine:
        """Return an engine for ``start`` to ``end`` only."""

        def table(spark: SparkSession, name: str) -> DataFrame:
            return self._table(spark, name).where(F.col("date").between(F.lit(start), F.lit(end)))

        return SparkEngine(self._session, table)

    def release(self) -> None:
        """Drop views and what was kept."""
        while self._kept:
            self._kept.pop().unpersist()
        while self._frames:
            name, _ = self._frames.popitem()
            self._spark.catalog.dropTempView(self._prefix + name)

    def _view(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(self._prefix + name)
        self._frames[name] = rows
