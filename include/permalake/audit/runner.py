"""Audit of a range of days: all expectations through Great Expectations."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import great_expectations as gx
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from pyspark.sql import DataFrame, SparkSession

from permalake.audit.catalogue import audited
from permalake.audit.findings import LAWS, AuditReport, Finding, merge, one_line
from permalake.audit.law_violations import law_violations
from permalake.audit.laws import Law
from permalake.audit.scope import Scope
from permalake.audit.suite import CRITICAL
from permalake.audit.validation import Wanted, findings_of, of_laws, of_rows, of_schema
from permalake.contracts.schema import Table
from permalake.spark.sizes import INTERPRETED_ROWS

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext

Part = Callable[[Scope, Sequence[date]], AuditReport]
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_QUIET = ("great_expectations", "py4j")


class Auditor:
    """The expectations of a domain's tables and laws; raw results go to ``store``."""

    def __init__(
        self, spark: SparkSession, tables: Iterable[Table], laws: Sequence[Law], store: Path
    ) -> None:
        self._spark = spark
        self._tables = audited(tables)
        self._laws = tuple(laws)
        self._results = store / "results"
        self._ahead: Future[DataFrame] | None = None
        staged = _context().data_sources.add_spark(name="staged", persist=False)
        self._rows = staged.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("days")

    def run(self, scope: Scope, days: Sequence[date], only: Collection[str] | None = None) -> AuditReport:
        """Audit ``days``, all at once; ``only`` names tables, or ``laws``, to restrict the audit to.

        When a failure names no day (an expectation that could not be computed), its table or the laws are
        audited again on halves of the days until it does.
        """
        parts: dict[str, Part] = {table.name: partial(self._audit_table, table) for table in self._tables}
        parts[LAWS] = self._audit_laws
        if only is not None:
            parts = {name: part for name, part in parts.items() if name in only}
        with interpreted(self._spark, scope), ThreadPoolExecutor(1) as pool:
            if LAWS in parts:  # Beside the tables: a table's query seldom fills more than one core.
                self._ahead = pool.submit(law_violations, self._spark, self._laws, scope)
            reports = [self._pinned_down(part, scope, tuple(days)) for part in parts.values()]
        return AuditReport(tuple(days), tuple(finding for report in reports for finding in report.findings))

    def _pinned_down(self, part: Part, scope: Scope, days: tuple[date, ...]) -> AuditReport:
        """Audit ``days``; while a failure names no day, halve them.

        What fails in both halves fails everywhere: the search ends.
        """
        report = part(scope, days)
        if not report.dateless or len(days) == 1:
            return report
        if all(finding.name in ("columns", "types") for finding in report.dateless):
            return report
        middle = len(days) // 2
        parts = [(scope.narrowed(half[0], half[-1]), half) for half in (days[:middle], days[middle:])]
        halves = [part(narrowed, half) for narrowed, half in parts]
        if len(days) > 2 and all(half.dateless for half in halves):
            return report
        found = [
            self._pinned_down(part, narrowed, half.days) if half.dateless else half
            for half, (narrowed, _) in zip(halves, parts, strict=True)
        ]
        return AuditReport(days, tuple(merge([_blame(half) for half in found])))

    def _audit_table(self, table: Table, scope: Scope, days: Sequence[date]) -> AuditReport:
        """Audit one table: the rules of its contract and its suite."""
        try:
            rows = scope(table.name)
        except Exception as error:  # noqa: BLE001 (reported as a finding)
            return AuditReport(tuple(days), (_unreadable(table.name, error),))
        wanted = of_schema(table)
        if list(table.names) == rows.columns and not scope.is_empty(table.name):
            wanted |= of_rows(table, days)
        return AuditReport(tuple(days), tuple(self._validate(table.name, rows, wanted, days)))

    def _audit_laws(self, scope: Scope, days: Sequence[date]) -> AuditReport:
        ahead, self._ahead = self._ahead, None
        found = ahead.result() if ahead else law_violations(self._spark, self._laws, scope)
        try:
            wanted = of_laws(self._laws, scope.protocol)
            return AuditReport(tuple(days), tuple(self._validate(LAWS, found, wanted, days)))
        finally:
            found.unpersist()
            scope.release()

    def _validate(self, name: str, rows: DataFrame, wanted: Wanted, days: Sequence[date]) -> list[Finding]:
        """Return the findings in ``rows``; write Great Expectations' result to a file beside the page.

        The batch is validated directly: a registered suite and validation definition would be serialized and
        compared again for each table without a reader.
        """
        suite = gx.ExpectationSuite(name=name, expectations=[one for _, _, one in wanted.values()])
        result = self._rows.get_batch({"dataframe": rows}).validate(suite, result_format="BASIC")
        file = self._results / name / f"{days[0]}_{days[-1]}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        values = result.to_json_dict()  # type: ignore[no-untyped-call]
        file.write_text(json.dumps(values, indent=1), "utf-8")
        return findings_of(result, wanted)


@contextmanager
def interpreted(spark: SparkSession, scope: Scope) -> Iterator[None]:
    """Turn code generation off while few rows are audited.

    A hundred small queries would spend most of their time in the compiler.
    """
    few = scope.rows is not None and sum(scope.rows.values()) <= INTERPRETED_ROWS
    settings = (_INTERPRETED if few else {}) | (
        {"spark.sql.shuffle.partitions": "1"} if scope.is_small else {}
    )
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, chosen in settings.items():
        spark.conf.set(name, chosen)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def _context() -> AbstractDataContext:
    """Return a context of Great Expectations that stores and sends nothing."""
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(), data_docs_sites={}, analytics_enabled=False
    )
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


def _blame(half: AuditReport) -> AuditReport:
    """Assign a failure without a day to the day when only one was audited."""
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
    return AuditReport(half.days, tuple(findings))


def _unreadable(table: str, error: Exception) -> Finding:
    return Finding(table, "readable", "The staged table can be read.", CRITICAL, False, error=one_line(error))
