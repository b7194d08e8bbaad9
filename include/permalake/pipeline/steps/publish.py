"""Step ``publish``: the audited days become visible, all tables in one transaction."""

from __future__ import annotations

from permalake.contracts.steps import StepResult
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.mirrored_days import judge


def run(context: StepContext) -> StepResult:
    """Publish the passing days; the result is invalid, with reasons, when others were withheld.

    A day that is copied from a publisher passes if it is what the publisher signed.
    """
    with context.pinned() as pinned:
        judge(context, pinned)
        publication = context.work.builds.publish(pinned)
    context.sign()
    context.announce()
    faults = [f"{day}: {reason}" for day, reason in sorted(publication.withheld.items())]
    return StepResult(
        state="invalid" if faults else "done",
        rows=publication.rows,
        days=publication.days,
        reason=f"not published: {'; '.join(faults)}" if faults else None,
        retryable=not faults,
    )
