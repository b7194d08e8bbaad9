"""Audit of a range of days: all expectations through Great Expectations."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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
from permalake.audit.outcomes import Outcomes
from permalake.audit.questions import AuditQuestion, answers, law_questions
from permalake.audit.scope import Scope
from permalake.audit.suite import CRITICAL
from permalake.audit.validation import ExpectationsByName, findings_of, of_laws, of_rows, of_schema, rules_of
from permalake.contracts.schema import Table

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext

_QUIET = ("great_expectations", "py4j")


class _UnreadableError(Exception):
    """A table that cannot be read at all."""

    def __init__(self, table: str, error: Exception) -> None:
        super().__init__(table)
        text = "The staged table can be read."
        self.finding = Finding(table, "readable", text, CRITICAL, False, error=one_line(error))


class _Part(Protocol):
    """A part of the audit: its expectations are validated together."""

    @property
    def name(self) -> str:
        """Unique within an audit."""

    def questions(self, scope: Scope, days: Sequence[date]) -> list[AuditQuestion]:
        """Return what has to be found out."""

    def scanned(
        self, scope: Scope, days: Sequence[date], outcomes: Mapping[str, Outcomes]
    ) -> tuple[ExpectationsByName, Scanned]:
        """Return what is expected, and what was found."""


@dataclass(frozen=True)
class _OfTable:
    """One table: the rules of its contract and its suite."""

    table: Table

    @property
    def name(self) -> str:
        return self.table.name

    def questions(self, scope: Scope, days: Sequence[date]) -> list[AuditQuestion]:
        try:
            types = self._types(scope)
        except _UnreadableError:
            return []
        if list(self.table.names) != list(types) or scope.is_empty(self.name):
            return []
        return [AuditQuestion(self.name, self.table, tuple(rules_of(self.table, days)))]

    def scanned(
        self, scope: Scope, days: Sequence[date], outcomes: Mapping[str, Outcomes]
    ) -> tuple[ExpectationsByName, Scanned]:
        types, expectations = self._types(scope), of_schema(self.table)
        if self.name in outcomes:
            expectations |= of_rows(self.table, rules_of(self.table, days))
        return expectations, Scanned(types, outcomes.get(self.name, {}))

    def _types(self, scope: Scope) -> dict[str, str]:
        try:
            return scope.engine(self.name).types(self.name)
        except Exception as error:
            raise _UnreadableError(self.name, error) from error


@dataclass(frozen=True)
class _OfLaws:
    """The laws across tables."""

    laws: tuple[Law, ...]
    name: str = LAWS

    def questions(self, scope: Scope, days: Sequence[date]) -> list[AuditQuestion]:  # noqa: ARG002
        return law_questions(self.laws)

    def scanned(
        self,
        scope: Scope,
        days: Sequence[date],  # noqa: ARG002
        answered: Mapping[str, Outcomes],
    ) -> tuple[ExpectationsByName, Scanned]:
        outcomes = {
            name: outcome
            for asked in law_questions(self.laws)
            for name, outcome in answered[asked.name].items()
        }
        expectations = of_laws(self.laws, scope.configuration.protocol)
        return expectations, Scanned({}, outcomes)


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
        parts: dict[str, _Part] = {table.name: _OfTable(table) for table in self._tables}
        parts[LAWS] = _OfLaws(self._laws)
        chosen_parts = [part for name, part in parts.items() if only is None or name in only]
        try:
            # All at once: what tasks answer, they answer side by side.
            outcomes = answers(
                [question for part in chosen_parts for question in part.questions(scope, days)], scope
            )
            reports = [self._pinned_down(part, scope, tuple(days), outcomes) for part in chosen_parts]
        finally:
            scope.release()
        return AuditReport(tuple(days), tuple(finding for report in reports for finding in report.findings))

    def _pinned_down(
        self, part: _Part, scope: Scope, days: tuple[date, ...], outcomes: Mapping[str, Outcomes]
    ) -> AuditReport:
        """Judge ``days`` by what was found; while a failure names no day, halve them.

        What fails in both halves fails everywhere: the search ends.
        """
        report = self._judged(part, scope, days, outcomes)
        if not report.dateless or len(days) == 1:
            return report
        if all(finding.name in ("columns", "types") for finding in report.dateless):
            return report
        middle = len(days) // 2
        parts = [(half, scope.narrowed(half[0], half[-1])) for half in (days[:middle], days[middle:])]
        asked = [
            (half, half_scope, answers(part.questions(half_scope, half), half_scope))
            for half, half_scope in parts
        ]
        halves = [self._judged(part, half_scope, half, outcomes) for half, half_scope, outcomes in asked]
        if len(days) > 2 and all(half.dateless for half in halves):
            return report
        named = [
            self._pinned_down(part, half_scope, half, outcomes) if report.dateless else report
            for report, (half, half_scope, outcomes) in zip(halves, asked, strict=True)
        ]
        return AuditReport(days, tuple(merge([_blame(half) for half in named])))

    def _judged(
        self, part: _Part, scope: Scope, days: Sequence[date], outcomes: Mapping[str, Outcomes]
    ) -> AuditReport:
        try:
            expectations, scanned = part.scanned(scope, days, outcomes)
        except _UnreadableError as error:
            return AuditReport(tuple(days), (error.finding,))
        return AuditReport(tuple(days), tuple(self._validate(part.name, scanned, expectations, days)))

    def _validate(
        self, name: str, scanned: Scanned, expectations: ExpectationsByName, days: Sequence[date]
    ) -> list[Finding]:
        """Return the findings in what was scanned; write Great Expectations' result to a file.

        The batch is validated directly: a registered suite and validation definition would be serialized and
        compared again for each table without a reader.
        """
        suite = gx.ExpectationSuite(
            name=name, expectations=[expectation for _, _, expectation in expectations.values()]
        )
        batch = self._rows.get_batch({"dataframe": batch_of(scanned)})
        result = batch.validate(suite, result_format="BASIC")
        file = self._results / name / f"{days[0]}_{days[-1]}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        values = result.to_json_dict()  # type: ignore[no-untyped-call]
        file.write_text(json.dumps(values, indent=1), "utf-8")
        return findings_of(result, expectations)


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
            *(finding.table, finding.name, finding.text, finding.severity, False),
            count=max(finding.count, 1),
            days=dict.fromkeys(half.days, max(finding.count, 1)),
            sample=finding.sample,
            error=finding.error,
        )
        if finding.is_failure and not finding.days and len(half.days) == 1
        else finding
        for finding in half.findings
    ]
    return AuditReport(half.days, tuple(findings))
