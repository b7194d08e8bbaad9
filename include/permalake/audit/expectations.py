"""Expectation types for Great Expectations that judge what a scan has found.

Its own row expectations cost several times as much and do not report which rows failed on which day (ADR
0039). Here a batch is a table's columns and the outcome of each rule (:mod:`permalake.audit.outcomes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pandas as pd
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.expectation_configuration import parse_result_format
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validator import ValidationDependencies

from permalake.audit.outcomes import Outcome, Outcomes

_SCANNED = "scanned"
_Arguments = dict[str, Any]
"""Arguments and results as Great Expectations declares them."""


@dataclass(frozen=True)
class Scanned:
    """The result of a table's scan: its columns with Spark's types, the outcomes of its rules."""

    types: Mapping[str, str]
    outcomes: Outcomes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: pandas copies what is attached to a frame with each of its columns."""
        return self


def batch_of(scanned: Scanned) -> pd.DataFrame:
    """Return what a batch is made of: no rows, the columns of a table, and what a scan found of it."""
    frame = pd.DataFrame(columns=list(scanned.types))
    frame.attrs = {_SCANNED: scanned}
    return frame


def _scanned(engine: PandasExecutionEngine, domain: _Arguments) -> Scanned:
    frame, _, _ = engine.get_compute_domain(domain, domain_type=MetricDomainTypes.TABLE)
    scanned: Scanned = frame.attrs[_SCANNED]
    return scanned


class RuleOutcome(TableMetricProvider):
    """Metric: what the scan found of a rule."""

    metric_name = "permalake.outcome"
    value_keys = ("rule",)

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,  # noqa: N805
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: _Arguments,
        metric_value_kwargs: _Arguments,
        metrics: _Arguments,  # noqa: ARG002
        runtime_configuration: _Arguments,  # noqa: ARG002
    ) -> Outcome:
        outcome = _scanned(execution_engine, metric_domain_kwargs).outcomes[metric_value_kwargs["rule"]]
        if outcome.error is not None:
            raise RuntimeError(outcome.error)
        return outcome


class ColumnTypes(TableMetricProvider):
    """Metric: the types of the columns, by Spark's names."""

    metric_name = "permalake.column_types"
    value_keys = ()

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,  # noqa: N805
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: _Arguments,
        metric_value_kwargs: _Arguments,  # noqa: ARG002
        metrics: _Arguments,  # noqa: ARG002
        runtime_configuration: _Arguments,  # noqa: ARG002
    ) -> dict[str, str]:
        return dict(_scanned(execution_engine, metric_domain_kwargs).types)


class _ScanExpectation(BatchExpectation):
    """Expectation about what a scan has found; it depends on one metric.

    Attributes:
        rule: The rule's name, unique within a batch.
    """

    rule: str

    metric: ClassVar[str] = RuleOutcome.metric_name
    metric_dependencies: ClassVar[tuple[str, ...]] = (metric,)

    def get_validation_dependencies(
        self,
        execution_engine: ExecutionEngine[Any] | None = None,  # noqa: ARG002
        runtime_configuration: _Arguments | None = None,
    ) -> ValidationDependencies:
        """Return the metric; the inherited way writes the whole configuration anew for each of its keys."""
        configuration = MetricConfiguration(
            self.metric,
            metric_domain_kwargs={"batch_id": self.batch_id},
            metric_value_kwargs={"rule": self.rule} if self.metric == RuleOutcome.metric_name else {},
        )
        result_format = parse_result_format((runtime_configuration or {}).get("result_format", "BASIC"))
        return ValidationDependencies({self.metric: configuration}, result_format)

    def _validate(
        self,
        metrics: _Arguments,
        runtime_configuration: _Arguments | None = None,  # noqa: ARG002
        execution_engine: ExecutionEngine[Any] | None = None,  # noqa: ARG002
    ) -> _Arguments:
        outcome: Outcome = metrics[self.metric]
        details = {"days": dict(outcome.days), "sample": [dict(row) for row in outcome.sample]}
        return {
            "success": outcome.count == 0,
            "result": {"observed_value": outcome.count, "details": details},
        }


class ExpectRowsToMeet(_ScanExpectation):
    """Every row meets ``predicate``; ``shown`` are the columns to report of one that does not."""

    predicate: str
    shown: list[str]

    success_keys: ClassVar[tuple[str, ...]] = ("rule", "predicate", "shown")


class ExpectKeyToBeUnique(_ScanExpectation):
    """No two rows share a key."""

    key: list[str]

    success_keys: ClassVar[tuple[str, ...]] = ("rule", "key")


class ExpectColumnTypes(_ScanExpectation):
    """The columns have these types (Spark's names), by column."""

    types: dict[str, str]

    metric: ClassVar[str] = ColumnTypes.metric_name
    metric_dependencies: ClassVar[tuple[str, ...]] = (metric,)
    success_keys: ClassVar[tuple[str, ...]] = ("rule", "types")

    def _validate(
        self,
        metrics: _Arguments,
        runtime_configuration: _Arguments | None = None,  # noqa: ARG002
        execution_engine: ExecutionEngine[Any] | None = None,  # noqa: ARG002
    ) -> _Arguments:
        differing: dict[str, str] = metrics[self.metric]
        wrong = [
            {"column": name, "expected": kind, "found": differing.get(name, "no such column")}
            for name, kind in self.types.items()
            if differing.get(name) != kind
        ]
        details = {"days": {}, "sample": wrong}
        return {"success": not wrong, "result": {"observed_value": len(wrong), "details": details}}
