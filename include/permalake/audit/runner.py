"""Runs all expectations of a range of days through Great Expectations."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from permalake.audit.catalogue import laws_of, suite_of
from permalake.audit.findings import LAWS, Finding, Report, merge
from permalake.audit.laws import Law, Scope, broken, one_line
from permalake.audit.suite import CRITICAL, Rule, basics, shown
from permalake.contracts import QUARANTINE, Table, tables_of

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.data_context import AbstractDataContext
    from great_expectations.expectations.expectation import Expectation

_FEW = 500_000
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_QUIET = ("great_expectations", "py4j")


class Auditor:
    """Expectations of a network, and the store that their results go to (a folder)."""

    def __init__(self, spark: SparkSession, network: str, store: Path) -> None:
        self._spark = spark
        self._network = network
        self._context = _context(store)
        self._batches = self._context.data_sources.add_spark(name="staged", persist=False)

    def run(self, scope: Scope, days: Sequence[date]) -> Report:
        """Judge the rows of ``days`` that ``scope`` gives.

        All days at once. Where a failure does not say which day is to blame (an expectation that could not be
        computed), its table or the laws are judged again on halves of the days until it does.
        """
        tables = [table for table in tables_of(self._network).values() if table is not QUARANTINE]
        parts = [*(partial(self._table, table) for table in tables), self._laws]
        with _interpreted(self._spark, scope):
            reports = [self._pinned_down(part, scope, tuple(days)) for part in parts]
        return Report(tuple(days), tuple(finding for report in reports for finding in report.findings))

    def _pinned_down(
        self, part: Callable[[Scope, Sequence[date]], Report], scope: Scope, days: tuple[date, ...]
    ) -> Report:
        report = part(scope, days)
        if not report.dateless or len(days) == 1:
            return report
        if all(finding.name in ("columns", "types") for finding in report.dateless):
            return report
        middle = len(days) // 2
        halves = [
            self._pinned_down(part, scope.narrowed(half[0], half[-1]), half)
            for half in (days[:middle], days[middle:])
        ]
        blamed = [_blame(half) for half in halves]
        return Report(days, tuple(merge(blamed)))

    def _table(self, table: Table, scope: Scope, days: Sequence[date]) -> Report:
        """The contract's basics and the suite of one table."""
        try:
            rows = scope(table.name)
        except Exception as error:
            return Report(tuple(days), (_unreadable(table.name, error),))
        wanted = _schema_expectations(table)
        if list(table.names) == rows.columns and not scope.is_empty(table.name):
            wanted |= _row_expectations(table, days)
        return Report(tuple(days), tuple(self._validate(table.name, rows, wanted)))

    def _laws(self, scope: Scope, days: Sequence[date]) -> Report:
        laws = laws_of(self._network)
        found = broken(self._spark, laws, scope)
        try:
            wanted = {law.name: (law.table, law.text, _law_expectation(law)) for law in laws}
            return Report(tuple(days), tuple(self._validate(LAWS, found, wanted)))
        finally:
            found.unpersist()
            scope.release()

    def _validate(
        self, name: str, rows: DataFrame, wanted: Mapping[str, tuple[str, str, Expectation]]
    ) -> list[Finding]:
        import great_expectations as gx

        context = self._context
        label = f"{self._network}.{name}"
        suite = gx.ExpectationSuite(name=label, expectations=[one for _, _, one in wanted.values()])
        suite = context.suites.add_or_update(suite)
        known = {asset.name for asset in self._batches.assets}
        asset = self._batches.get_asset(label) if label in known else self._batches.add_dataframe_asset(label)
        batch = next(
            (one for one in asset.batch_definitions), None
        ) or asset.add_batch_definition_whole_dataframe("days")
        run = context.validation_definitions.add_or_update(
            gx.ValidationDefinition(name=label, data=batch, suite=suite)
        )
        result = run.run(batch_parameters={"dataframe": rows}, result_format="BASIC")
        return _findings(result, wanted)


@contextmanager
def _interpreted(spark: SparkSession, scope: Scope) -> Iterator[None]:
    """Without code generation where rows are known to be few: a hundred small queries would spend most of
    their time in the compiler."""
    few = scope.rows is not None and sum(scope.rows.values()) <= _FEW
    before = {name: spark.conf.get(name, None) for name in _INTERPRETED} if few else {}
    for name in before:
        spark.conf.set(name, _INTERPRETED[name])
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def _context(store: Path) -> AbstractDataContext:
    """An ephemeral context of Great Expectations whose validation results are files."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import DataContextConfig

    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    results = {
        "class_name": "ValidationResultsStore",
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(store / "results"),
        },
    }
    in_memory = {"class_name": "InMemoryStoreBackend"}
    config = DataContextConfig(
        stores={
            "results": results,
            "suites": {"class_name": "ExpectationsStore", "store_backend": in_memory},
            "checkpoints": {"class_name": "CheckpointStore", "store_backend": in_memory},
            "validation_definition_store": {
                "class_name": "ValidationDefinitionStore",
                "store_backend": in_memory,
            },
        },
        expectations_store_name="suites",
        validation_results_store_name="results",
        checkpoint_store_name="checkpoints",
        data_docs_sites={},
        analytics_enabled=False,
    )
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False}
    return context


def _schema_expectations(table: Table) -> dict[str, tuple[str, str, Expectation]]:
    import great_expectations.expectations as gxe

    from permalake.audit.expectations import ExpectColumnTypes

    types = {field.name: field.dataType.simpleString() for field in table.spark}
    columns = gxe.ExpectTableColumnsToMatchOrderedList(
        column_list=list(table.names), severity=CRITICAL, meta={"rule": "columns"}
    )
    typed = ExpectColumnTypes(rule="types", types=types, severity=CRITICAL, meta={"rule": "types"})
    return {
        "columns": (table.name, "Columns are those of the contract, in order.", columns),
        "types": (table.name, "Columns have the types of the contract.", typed),
    }


def _row_expectations(table: Table, days: Sequence[date]) -> dict[str, tuple[str, str, Expectation]]:
    from permalake.audit.expectations import ExpectKeyToBeUnique

    span = f"date BETWEEN DATE'{min(days)}' AND DATE'{max(days)}'"
    if table.keeps_clock:  # A quote may be a few hours older or younger than what it prices.
        span = f"date BETWEEN DATE'{min(days) - timedelta(1)}' AND DATE'{max(days) + timedelta(1)}'"
    within = Rule("date_within_range", span, "date is one of the audited days.")
    wanted: dict[str, tuple[str, str, Expectation]] = {
        rule.name: (table.name, rule.text, _rule_expectation(rule, shown(table, rule.predicate)))
        for rule in (*basics(table), within, *suite_of(table.name).rules)
    }
    key = ExpectKeyToBeUnique(
        rule="key_unique", key=list(table.key), severity=CRITICAL, meta={"rule": "key_unique"}
    )
    return {"key_unique": (table.name, f"({', '.join(table.key)}) identifies a row.", key)} | wanted


def _rule_expectation(rule: Rule, columns: Sequence[str]) -> Expectation:
    from permalake.audit.expectations import ExpectRowsToMeet

    return ExpectRowsToMeet(
        rule=rule.name,
        predicate=rule.predicate,
        shown=list(columns),
        description=rule.text,
        severity=rule.severity,
        meta={"rule": rule.name},
    )


def _law_expectation(law: Law) -> Expectation:
    rule = Rule(law.name, f"law <> '{law.name}'", law.text, law.severity)
    return _rule_expectation(rule, ("place", "expected", "found"))


def _findings(
    result: ExpectationSuiteValidationResult, wanted: Mapping[str, tuple[str, str, Expectation]]
) -> list[Finding]:
    findings = []
    for one in result.results:
        name = (one.expectation_config.meta or {})["rule"]
        table, text, expectation = wanted[name]
        findings.append(
            Finding(
                *(table, name, text, expectation.severity.value, bool(one.success)),
                **_outcome(one.result or {}, one.exception_info or {}),
            )
        )
    order = list(wanted)
    return sorted(findings, key=lambda finding: order.index(finding.name))


def _outcome(result: Mapping[str, Any], exception: Mapping[str, Any]) -> dict[str, Any]:
    if error := _raised(exception):
        return {"error": error}
    details = result.get("details") or {}
    rows = tuple(details.get("sample") or ())
    if "mismatched" in details:
        wrong = (details["mismatched"], list(result["observed_value"]))
        return {"count": 1, "sample": ({"columns": "columns", "expected": wrong[0], "found": wrong[1]},)}
    # A law without a date is one that could not be computed.
    errors = [row["found"] for row in rows if "date" in row and row["date"] is None]
    if errors:
        return {"error": str(errors[0]), "count": result["observed_value"]}
    days = {date.fromisoformat(day): count for day, count in (details.get("days") or {}).items()}
    count = result.get("observed_value")
    return {"count": count if isinstance(count, int) else 0, "days": days, "sample": rows}


def _raised(exception: Mapping[str, Any]) -> str | None:
    """The message of an exception inside an expectation: of the expectation, or of one of its metrics."""
    inner = [exception] if "raised_exception" in exception else list(exception.values())
    for one in inner:
        if isinstance(one, Mapping) and one.get("raised_exception"):
            return one_line(str(one.get("exception_message") or "could not be computed"))
    return None


def _blame(half: Report) -> Report:
    """A dateless failure of a single day is that day's."""
    findings = [
        Finding(
            *(one.table, one.name, one.text, one.severity, False),
            count=max(one.count, 1),
            days=dict.fromkeys(half.days, max(one.count, 1)),
            sample=one.sample,
            error=one.error,
        )
        if one.is_failure and not one.days and len(half.days) == 1
        else one
        for one in half.findings
    ]
    return Report(half.days, tuple(findings))


def _unreadable(table: str, error: Exception) -> Finding:
    return Finding(table, "readable", "The staged table can be read.", CRITICAL, False, error=one_line(error))
