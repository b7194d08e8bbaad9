"""The steps that end a day of every domain: audit, publish, serve."""

from __future__ import annotations

from permalake.contracts.steps import Step
from permalake.pipeline.domain import PUBLISH, SERVE


def closing_steps(store: str) -> tuple[Step, ...]:
    """Return the steps that follow a domain's own; ``store`` names where its published days go."""
    return (
        Step(
            "audit",
            phases=("audit",),
            run="permalake.pipeline.steps.audit:run",
            job="audit",
            doc="Audits the staged tables with Great Expectations and the laws across tables, day by day, "
            "and leaves Data Docs behind.",
        ),
        Step(
            PUBLISH,
            phases=("publish",),
            run="permalake.pipeline.steps.publish:run",
            doc="Publishes the passing days, all tables in one transaction, and fails naming the others.",
        ),
        Step(
            SERVE,
            phases=("serve",),
            run="permalake.pipeline.steps.serve:run",
            job="serve",
            doc=f"Writes every published day that {store} does not have yet, this run's and any it missed "
            "before. Skipped where no store is configured; a store that is down delays this step alone.",
        ),
    )
