"""Step ``audit``: staged tables → verdict per day and Data Docs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib import import_module
from pathlib import Path
from types import ModuleType

from permalake.audit import docs
from permalake.audit.findings import AuditReport
from permalake.audit.lean_import import lean_import
from permalake.audit.staged import scope_of
from permalake.contracts.steps import StepResult
from permalake.lake import CarryAttempt, PinnedAttempt
from permalake.pipeline.jobs import StepContext


def _runner() -> ModuleType:
    with lean_import():
        return import_module("permalake.audit.runner")


# Great Expectations takes a second to import, while the audit reads what is staged.
RUNNER = ThreadPoolExecutor(1).submit(_runner)


def run(context: StepContext) -> StepResult:
    """Audit the pinned staging day by day; the result is invalid when no day passed."""
    with context.resume() as attempt:
        return _audited(context, attempt.pin())


def _audited(context: StepContext, pinned: PinnedAttempt) -> StepResult:
    arguments = context.arguments
    days = pinned.days_with_rows()
    if not days:
        context.report(f"audit {arguments}: no rows to audit")
        return StepResult()
    report, page = audit_report(context, pinned, days, title=str(arguments), carried=False)
    failures = {day: report.failures(day) for day in days}
    for day in days:
        pinned.verdict(day, not failures[day], failures[day])
    for finding in (*report.failed, *report.warnings):
        context.report(f"audit {arguments}: {finding.severity}: {finding.line()}")
    passed = [day for day in days if not failures[day]]
    context.report(f"audit {arguments}: {len(passed)} of {len(days)} days passed; docs: {page}")
    if passed:
        return StepResult(docs=str(page))
    reason = f"audit of {arguments} failed: {report.summary()}"
    return StepResult("invalid", docs=str(page), reason=reason, retryable=False)


def audit_report(
    context: StepContext,
    staging: PinnedAttempt | CarryAttempt,
    days: Sequence[date],
    *,
    title: str,
    carried: bool,
) -> tuple[AuditReport, Path]:
    """Audit the days' own tables, or the ``carried`` ones; return the report and its page."""
    arguments, work = context.arguments, context.work
    every = work.domain.tables
    scope = scope_of(lambda: context.spark, work.settings, staging, every)
    tables = [table for table in every.values() if (table.commit == "carried") == carried]
    laws = [law for law in work.domain.laws() if every[law.table] in tables]
    folder = docs.folder(arguments.network, staging.id)
    report: AuditReport = RUNNER.result().Auditor(tables, laws, folder).run(scope, days)
    return report, docs.write(report, folder, title=title, run_id=arguments.run_id)
