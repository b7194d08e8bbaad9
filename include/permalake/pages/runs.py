"""Runs as HTML pages, from the rows of the step ledger."""

from __future__ import annotations

from collections.abc import Sequence

from permalake.lake.step_ledger import StepRow
from permalake.pages.calendar import render

_MARKS = {
    "running": "waiting",
    "done": "published",
    "skipped": "none",
    "invalid": "failed",
    "failed": "failed",
}
"""Class of the calendar's colours for each state of a step."""


def run_page(run: str, rows: Sequence[StepRow]) -> str:
    """Return the page of one run, a line per try of a step, with timings, outcome and log."""
    return render("run.html", run=run, rows=rows, marks=_MARKS)


def runs_page(rows: Sequence[StepRow]) -> str:
    """Return the page of the newest runs, a line each; ``rows`` are the newest tries, newest first."""
    newest: dict[tuple[str, str], StepRow] = {}
    for row in rows:
        newest.setdefault((row.key.network, row.key.run_id), row)
    return render("runs.html", rows=list(newest.values()), marks=_MARKS)
