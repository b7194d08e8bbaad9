"""The steps that end a day of every domain: audit, publish, carry, wait for the store, serve."""

from __future__ import annotations

from permalake.contracts.steps import CARRY, PUBLISH, SERVE, WAIT, Step


def closing_steps(store: str, carried: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps that follow a domain's own.

    ``store`` names where its published days go, ``carried`` the carried tables.
    """
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
            light=True,
        ),
        Step(
            CARRY,
            phases=("carry",),
            run="permalake.pipeline.steps.carry:run",
            job="carry",
            doc="Builds the tables of the state at a day's end, from the first published day that is "
            "not carried yet to the last one, audits them, and publishes them in one transaction.",
            writes=carried,
            light=True,
        ),
        Step(
            WAIT,
            phases=(),
            run="permalake.pipeline.steps.wait:run",
            doc=f"Waits until {store} answers, an hour at most, and creates tables that it lacks. Skipped "
            "where no store is configured.",
        ),
        Step(
            SERVE,
            phases=("serve",),
            run="permalake.pipeline.steps.serve:run",
            job="serve",
            doc=f"Writes every published day that {store} does not have yet, this run's and any it missed "
            "before. Skipped where no store is configured.",
        ),
    )
