"""The day of a run that names none: the same for each of its tasks, whenever they run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from airflow.sdk.api.datamodels._generated import DagRun

from permalake.orchestrate.context import interval_day

LATE = datetime(2022, 9, 30, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("begin", "triggered", "expected"),
    [
        (datetime(2022, 9, 27, tzinfo=UTC), LATE, date(2022, 9, 27)),
        (None, LATE, date(2022, 9, 29)),
        (None, datetime(2022, 9, 30, 1, tzinfo=timezone(timedelta(hours=2))), date(2022, 9, 28)),
    ],
)
def test_a_run_is_about_its_interval_or_the_day_before_it_was_triggered(begin, triggered, expected) -> None:
    run = SimpleNamespace(run_after=triggered)
    assert interval_day({"dag_run": run, "data_interval_start": begin}) == expected


def test_every_run_says_when_it_was_triggered() -> None:
    assert DagRun.model_fields["run_after"].is_required()
