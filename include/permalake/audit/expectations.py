"""Expectation types for Great Expectations that fit a day of a lake.

Its own row expectations run a job each and do not report which rows failed on which day. These are
aggregates: Great Expectations computes all of a table's in one pass, and only a failing one reads rows again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.metric_provider import metric_partial
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

SAMPLE = 5
"""Failing rows to report of each day."""
_aggregate = metric_partial(
    engine=SparkDFExecutionEngine,
    partial_fn_type=MetricPartialFunctionTypes.AGGREGATE_FN,
    domain_type=MetricDomainTypes.TABLE,
)


class UnmetRows(TableMetricProvider):
    """Metric: number of rows for which a predicate is false."""

    metric_name = "permalake.unmet_rows"
    value_keys = ("predicate",)

    @_aggregate
    def _spark(
        cls,  # noqa: N805
        execution_engine: SparkDFExecutionEngine,  # noqa: ARG002
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],  # noqa: ARG002
        runtime_configuration: dict[str, Any],  # noqa: ARG002
    ) -> tuple[Column, dict[str, Any], dict[str, Any]]:
        return F.count_if(~F.expr(metric_value_kwargs["predicate"])), metric_domain_kwargs, {}


class SurplusRows(TableMetricProvider):
    """Metric: number of rows beyond one per distinct key."""

    metric_name = "permalake.surplus_rows"
    value_keys = ("key",)

    @_aggregate
    def _spark(
        cls,  # noqa: N805
        execution_engine: SparkDFExecutionEngine,  # noqa: ARG002
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],  # noqa: ARG002
        runtime_configuration: dict[str, Any],  # noqa: ARG002
    ) -> tuple[Column, dict[str, Any], dict[str, Any]]:
        # A struct counts even where a part of it is null.
        key = F.struct(*metric_value_kwargs["key"])
        return F.count(F.lit(1)) - F.count_distinct(key), metric_domain_kwargs, {}


class ExpectRowsToMeet(BatchExpectation):
    """Every row meets ``predicate``; ``shown`` are the columns to report of one that does not."""

    rule: str
    predicate: str
    shown: list[str]

    metric_dependencies: ClassVar[tuple[str, ...]] = ("permalake.unmet_rows",)
    success_keys: ClassVar[tuple[str, ...]] = ("rule", "predicate", "shown")

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        def failing() -> DataFrame:
            return _rows(execution_engine).where(~F.expr(self.predicate)).select("date", *self.shown)

        return _result(metrics["permalake.unmet_rows"], failing)


class ExpectKeyToBeUnique(BatchExpectation):
    """No two rows share a key."""

    rule: str
    key: list[str]

    metric_dependencies: ClassVar[tuple[str, ...]] = ("permalake.surplus_rows",)
    success_keys: ClassVar[tuple[str, ...]] = ("rule", "key")

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        def failing() -> DataFrame:
            # A key on several days is a fault of each of them.
            key = [F.col(name).alias(f"_key_{name}") for name in self.key]
            names = [f"_key_{name}" for name in self.key]
            rows = _rows(execution_engine).select("date", *key).groupBy(*names)
            twice = rows.agg(F.count(F.lit(1)).alias("rows"), F.collect_set("date").alias("dates"))
            shown = [F.col(f"_key_{name}").alias(name) for name in self.key if name != "date"]
            return twice.where("rows > 1").select(F.explode("dates").alias("date"), *shown, "rows")

        return _result(metrics["permalake.surplus_rows"], failing)


class ExpectColumnTypes(BatchExpectation):
    """The columns have these types (Spark's names), by column."""

    rule: str
    types: dict[str, str]

    metric_dependencies: ClassVar[tuple[str, ...]] = ()
    success_keys: ClassVar[tuple[str, ...]] = ("rule", "types")

    def _validate(
        self,
        metrics: dict[str, Any],  # noqa: ARG002
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        found = {field.name: field.dataType.simpleString() for field in _rows(execution_engine).schema}
        wrong = [
            {"column": name, "expected": kind, "found": found.get(name, "no such column")}
            for name, kind in self.types.items()
            if found.get(name) != kind
        ]
        details = {"days": {}, "sample": wrong}
        return {"success": not wrong, "result": {"observed_value": len(wrong), "details": details}}


def _rows(engine: ExecutionEngine[Any] | None) -> DataFrame:
    if not isinstance(engine, SparkDFExecutionEngine):
        raise TypeError("these expectations judge Spark frames only")
    rows: DataFrame = engine.get_domain_records({"batch_id": engine.batch_manager.active_batch_data_id})
    return rows


def _result(count: int, failing: Callable[[], DataFrame]) -> dict[str, Any]:
    details = _details(failing()) if count else {"days": {}, "sample": []}
    return {"success": count == 0, "result": {"observed_value": count, "details": details}}


def _details(failing: DataFrame) -> dict[str, Any]:
    """Return the number of failing rows per day, and a few of each day."""
    per_day = Window.partitionBy("date")
    first = per_day.orderBy(*failing.columns[1:]) if len(failing.columns) > 1 else per_day.orderBy("date")
    shown = [
        F.lower(F.hex(field.name)).alias(field.name)
        if isinstance(field.dataType, BinaryType)
        else F.col(field.name)
        for field in failing.schema
    ]
    few = failing.select(
        *shown,
        F.count(F.lit(1)).over(per_day).alias("_count"),
        F.row_number().over(first).alias("_place"),
    ).where(F.col("_place") <= SAMPLE)
    rows = [row.asDict() for row in few.orderBy("date", "_place").collect()]
    days = {_plain(row["date"]) or "": row["_count"] for row in rows}
    sample = [
        {name: _plain(value) for name, value in row.items() if name not in ("_count", "_place")}
        for row in rows
    ]
    return {"days": days, "sample": sample}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else value
