"""Step ``audit``: staged tables → verdict per day and Data Docs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from permalake.audit import docs
from permalake.audit.staged import scope_of
from permalake.contracts.steps import StepResult
from permalake.lake import PinnedAttempt
from permalake.pipeline.jobs import StepContext

# Great Expectations takes as long to import as Spark to start: it begins with this module's own import.
RUNNER = ThreadPoolExecutor(1).submit(import_module, "permalake.audit.runner")


def run(context: StepContext) -> StepResult:
    """Audit the pinned staging day by day; the result is invalid when no day passed."""
    with context.resume() as attempt:
        return _audited(context, attempt.pin())


def _audited(context: StepContext, pinned: PinnedAttempt) -> StepResult:
    order, work = context.order, context.work
    days = pinned.days_with_rows()
    if not days:
        context.report(f"audit {order}: no rows to audit")
        return StepResult()
    folder = docs.folder(order.network, pinned.id)
    scope = scope_of(lambda: context.spark, work.settings, work.reader, pinned, work.domain.tables)
    tables = [table for table in work.domain.tables.values() if table.commit != "carried"]
    names = {table.name for table in tables}
    laws = [law for law in work.domain.laws() if law.table in names]
    auditor = RUNNER.result().Auditor(tables, laws, folder)
    report = auditor.run(scope, days)
    page = docs.write(report, folder, title=str(order), run_id=order.run_id)
    failures = {day: report.failures(day) for day in days}
    for day in days:
        pinned.verdict(day, not failures[day], failures[day])
    for finding in (*report.failed, *report.warnings):
        context.report(f"audit {order}: {finding.severity}: {finding.line()}")
    passed = [day for day in days if not failures[day]]
    context.report(f"audit {order}: {len(passed)} of {len(days)} days passed; docs: {page}")
    if passed:
        return StepResult(docs=str(page))
    reason = f"audit of {order} failed: {report.summary()}"
    return StepResult("invalid", docs=str(page), reason=reason, retryable=False)
