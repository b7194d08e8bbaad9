"""Audit of a range of days: all expectations through Great Expectations."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
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

from permalake.audit.catalogue import audited
from permalake.audit.expectations import Scanned, batch_of
from permalake.audit.findings import LAWS, AuditReport, Finding, merge, one_line
from permalake.audit.laws import Law
from permalake.audit.outcomes import Outcomes, law_outcomes, rule_outcomes
from permalake.audit.scope import Scope
from permalake.audit.suite import CRITICAL
from permalake.audit.validation import Wanted, findings_of, of_laws, of_rows, of_schema, rules_of
from permalake.contracts.schema import Table

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext

Part = Callable[[Scope, Sequence[date]], AuditReport]
_QUIET = ("great_expectations", "py4j")


class Auditor:
    """The expectations of a domain's tables and laws; raw results go to ``store``."""

    def __init__(self, tables: Iterable[Table], laws: Sequence[Law], store: Path) -> None:
        self._tables = audited(tables)
        self._laws = tuple(laws)
        self._results = store / "results"
        staged = _context().data_sources.add_pandas(name="staged")
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
        try:
            reports = [self._pinned_down(part, scope, tuple(days)) for part in parts.values()]
        finally:
            scope.release()
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
            engine = scope.engine(table.name)
            types = engine.types(table.name)
        except Exception as error:  # noqa: BLE001 (reported as a finding)
            return AuditReport(tuple(days), (_unreadable(table.name, error),))
        wanted, outcomes = of_schema(table), Outcomes()
        if list(table.names) == list(types) and not scope.is_empty(table.name):
            rules = rules_of(table, days)
            wanted |= of_rows(table, rules)
            outcomes = rule_outcomes(engine, table, rules)
        return AuditReport(
            tuple(days), tuple(self._validate(table.name, Scanned(types, outcomes), wanted, days))
        )

    def _audit_laws(self, scope: Scope, days: Sequence[date]) -> AuditReport:
        """Audit the laws across tables."""
        wanted = of_laws(self._laws, scope.configuration.protocol)
        outcomes = law_outcomes(self._laws, scope)
        return AuditReport(tuple(days), tuple(self._validate(LAWS, Scanned({}, outcomes), wanted, days)))

    def _validate(self, name: str, scanned: Scanned, wanted: Wanted, days: Sequence[date]) -> list[Finding]:
        """Return the findings in what was scanned; write Great Expectations' result to a file.

        The batch is validated directly: a registered suite and validation definition would be serialized and
        compared again for each table without a reader.
        """
        suite = gx.ExpectationSuite(name=name, expectations=[one for _, _, one in wanted.values()])
        batch = self._rows.get_batch({"dataframe": batch_of(scanned)})
        result = batch.validate(suite, result_format="BASIC")
        file = self._results / name / f"{days[0]}_{days[-1]}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        values = result.to_json_dict()  # type: ignore[no-untyped-call]
        file.write_text(json.dumps(values, indent=1), "utf-8")
        return findings_of(result, wanted)


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
