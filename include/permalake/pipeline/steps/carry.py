"""Step ``carry``: published days → the carried tables, audited and published at once.

It begins at the first published day that is not carried, whichever run published it, and ends at the last
published day. One run at a time carries a network; others wait for it, and find their days carried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from permalake.contracts.steps import StepResult
from permalake.lake import CarryAttempt
from permalake.lake.leases import format_range
from permalake.pipeline.domain import loaded
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.mirrored_days import carried_difference
from permalake.pipeline.steps.audit import audit_report

Carry = Callable[[StepContext, CarryAttempt], Mapping[date, str]]
"""Stages the carried tables of an attempt; returns the published days that are stale now, with the reason."""
WAIT_SECONDS = 1800
"""The time that a run waits for another one that carries the same network."""


def run(context: StepContext) -> StepResult:
    """Carry what waits; the result is invalid, and nothing is published, when the audit fails."""
    arguments, work = context.arguments, context.work
    with work.carries.begin(arguments.network, arguments.run_id, wait=WAIT_SECONDS) as attempt:
        if attempt is None:
            context.report(f"carry {arguments.network}: every published day is carried")
            return StepResult(days=())
        return _carried(context, attempt)


def _carried(context: StepContext, attempt: CarryAttempt) -> StepResult:
    network, work = context.arguments.network, context.work
    build: Carry = loaded(work.domain.carry)
    stale = build(context, attempt)
    days = attempt.published_days
    span = format_range(days[0], days[-1])
    report, page = audit_report(
        context, attempt, days, title=f"{network} {span}, carried tables", carried=True
    )
    for finding in (*report.failed, *report.warnings):
        context.report(f"carry {network} {span}: {finding.severity}: {finding.line()}")
    if report.failed:
        reason = f"audit of the carried tables of {network} {span} failed: {report.summary()}"
        return StepResult("invalid", docs=str(page), reason=reason, retryable=False, days=())
    if difference := carried_difference(context, attempt):
        return StepResult("invalid", docs=str(page), reason=difference, retryable=False, days=())
    # Marked first: whoever sees the days carried also sees which are stale.
    for day, line in stale.items():
        work.builds.mark_stale(network, [day], line)
    rows = attempt.publish()
    context.sign()
    context.announce()
    context.report(f"carry {network}: {len(days)} day{'s' * (len(days) != 1)}, {span}; docs: {page}")
    return StepResult(rows=rows, docs=str(page), days=tuple(days))
