"""Step ``audit``: staged tables → verdict per day and Data Docs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from permalake.audit import docs
from permalake.audit.staged import scope_of
from permalake.contracts.steps import StepResult
from permalake.pipeline.jobs import StepContext

# Great Expectations takes as long to import as Spark to start: it begins with this module's own import.
RUNNER = ThreadPoolExecutor(1).submit(import_module, "permalake.audit.runner")


def run(context: StepContext) -> StepResult:
    """Audit the pinned staging day by day; the result is invalid when no day passed."""
    order, work = context.order, context.work
    attempt = context.resume()
    attempt.pin()
    days = attempt.days_with_rows()
    if not days:
        context.report(f"audit {order}: no rows to audit")
        return StepResult()
    folder = docs.folder(order.network, attempt.id)
    scope = scope_of(context.spark, work.settings, work.lake, attempt, work.domain.tables)
    tables, laws = work.domain.tables, work.domain.laws()
    auditor = RUNNER.result().Auditor(context.spark, tables.values(), laws, folder)
    report = auditor.run(scope, days)
    page = docs.write(report, folder, title=str(order), run_id=order.run_id)
    for day in days:
        failures = report.failures(day)
        attempt.verdict(day, not failures, failures)
    for finding in (*report.failed, *report.warnings):
        context.report(f"audit {order}: {finding.severity}: {finding.line()}")
    context.report(f"audit {order}: {len(report.passed)} of {len(days)} days passed; docs: {page}")
    if report.passed:
        return StepResult(docs=str(page))
    reason = f"audit of {order} failed: {report.summary()}"
    return StepResult("invalid", docs=str(page), reason=reason, retryable=False)
