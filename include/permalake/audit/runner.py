"""Runs all expectations of a range of days through Great Expectations."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
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

from permalake.audit.catalogue import laws_of
from permalake.audit.findings import LAWS, Finding, Report, merge
from permalake.audit.laws import Scope, broken, one_line
from permalake.audit.suite import CRITICAL
from permalake.audit.validation import Wanted, findings_of, of_laws, of_rows, of_schema
from permalake.contracts import QUARANTINE, Table, tables_of

if TYPE_CHECKING:
    from great_expectations.data_context import AbstractDataContext

Part = Callable[[Scope, Sequence[date]], Report]
_FEW = 500_000
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_QUIET = ("great_expectations", "py4j")


class Auditor:
    """Expectations of a network, and the folder that their results go to."""

    def __init__(self, spark: SparkSession, network: str, store: Path) -> None:
        self._spark = spark
        self._network = network
        self._results = store / "results"
        self._ahead: Future[DataFrame] | None = None
        staged = _context().data_sources.add_spark(name="staged", persist=False)
        self._rows = staged.add_dataframe_asset(network).add_batch_definition_whole_dataframe("days")

    def run(self, scope: Scope, days: Sequence[date], only: Collection[str] | None = None) -> Report:
        """Judge the rows of ``days`` that ``scope`` gives; of some tables ``only`` when told (``laws`` is one
        of them).

        All days at once. Where a failure does not say which day is to blame (an expectation that could not be
        computed), its table or the laws are judged again on halves of the days until it does.
        """
        tables = [table for table in tables_of(self._network).values() if table is not QUARANTINE]
        parts: dict[str, Part] = {table.name: partial(self._table, table) for table in tables}
        parts[LAWS] = self._laws
        if only is not None:
            parts = {name: part for name, part in parts.items() if name in only}
        with interpreted(self._spark, scope), ThreadPoolExecutor(1) as pool:
            if LAWS in parts:  # Beside the tables: a table's query seldom fills more than one core.
                self._ahead = pool.submit(broken, self._spark, laws_of(self._network), scope)
            reports = [self._pinned_down(part, scope, tuple(days)) for part in parts.values()]
        return Report(tuple(days), tuple(finding for report in reports for finding in report.findings))

    def _pinned_down(self, part: Part, scope: Scope, days: tuple[date, ...]) -> Report:
        """Judge ``days``; where a failure has no day, halve them until it has one. What fails in both halves
        fails everywhere, and is not looked for any further."""
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
        return Report(days, tuple(merge([_blame(half) for half in found])))

    def _table(self, table: Table, scope: Scope, days: Sequence[date]) -> Report:
        """The contract's basics and the suite of one table."""
        try:
            rows = scope(table.name)
        except Exception as error:
            return Report(tuple(days), (_unreadable(table.name, error),))
        wanted = of_schema(table)
        if list(table.names) == rows.columns and not scope.is_empty(table.name):
            wanted |= of_rows(table, days)
        return Report(tuple(days), tuple(self._validate(table.name, rows, wanted, days)))

    def _laws(self, scope: Scope, days: Sequence[date]) -> Report:
        laws = laws_of(self._network)
        ahead, self._ahead = self._ahead, None
        found = ahead.result() if ahead else broken(self._spark, laws, scope)
        try:
            return Report(tuple(days), tuple(self._validate(LAWS, found, of_laws(laws), days)))
        finally:
            found.unpersist()
            scope.release()

    def _validate(self, name: str, rows: DataFrame, wanted: Wanted, days: Sequence[date]) -> list[Finding]:
        """What is found in ``rows``; Great Expectations' own result goes into a file beside the page.

        The batch is validated as it is: a registered suite and validation definition would be written, read
        and compared anew for each table, for nobody.
        """
        suite = gx.ExpectationSuite(name=name, expectations=[one for _, _, one in wanted.values()])
        result = self._rows.get_batch({"dataframe": rows}).validate(suite, result_format="BASIC")
        file = self._results / name / f"{days[0]}_{days[-1]}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result.to_json_dict(), indent=1), "utf-8")
        return findings_of(result, wanted)


@contextmanager
def interpreted(spark: SparkSession, scope: Scope) -> Iterator[None]:
    """Without code generation where rows are known to be few: a hundred small queries would spend most of
    their time in the compiler."""
    few = scope.rows is not None and sum(scope.rows.values()) <= _FEW
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
    """A context of Great Expectations that keeps and sends nothing."""
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(), data_docs_sites={}, analytics_enabled=False
    )
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


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
