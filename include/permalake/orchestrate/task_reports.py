"""The report of each task at its end, as an XCom, for the note of its run.

The note is written by processes that should not open the lake: Airflow's scheduler and server.
"""

from __future__ import annotations

import logging
from typing import Any, TypedDict

from permalake.contracts.steps import CARRY, Step, StepResult
from permalake.pipeline.request import BuildRequest

log = logging.getLogger("airflow.task")
REPORT = "permalake_report"
"""Key of the XCom."""


class TaskReport(TypedDict):
    """A report of one try of a task.

    ``attempt``: id of the try; ``subject``: network and days, None where they could not be read;
    ``outcome``: its work, if it is worth reporting; ``reason``: why it failed or was skipped.
    """

    attempt: str
    subject: str | None
    outcome: str | None
    reason: str | None


def leave(context: Any, subject: str | None, outcome: str | None = None, reason: str | None = None) -> None:
    """Leave a task's report; one that Airflow does not take is a line in the log.

    That is so where somebody marked the task meanwhile.
    """
    try:
        task = context["ti"]
        report = TaskReport(attempt=str(task.id), subject=subject, outcome=outcome, reason=reason)
        task.xcom_push(REPORT, dict(report))
    except Exception as error:  # noqa: BLE001 - a report that cannot be left must not change how its task ends
        log.warning("the note of the run will lack this task's report: %s", error)


def outcome_of(request: BuildRequest, step: Step, result: StepResult) -> str | None:
    """Return what a step did in a few words; None where nobody asks for it in a run's note."""
    if result.served:
        return ", ".join(f"{_days(days)} into {store}" for store, days in result.served.items())
    if not result.days:
        return None
    if step.name == CARRY:
        return f"{_days(len(result.days))} carried"
    asked = (request.end - request.start).days + 1
    which = "published" if len(result.days) == asked else f"published {len(result.days)} of {asked} days"
    filled = {table: rows for table, rows in result.rows.items() if rows}
    if not filled:
        return f"{which}, without rows"
    table, name = request.domain.item_table, request.domain.item_name
    items = f"{filled[table]:,} {name}, " if table in filled else ""
    return f"{which}, {items}{sum(filled.values()):,} rows in {len(filled)} tables"


def _days(number: int) -> str:
    return f"{number:,} {'day' if number == 1 else 'days'}"
