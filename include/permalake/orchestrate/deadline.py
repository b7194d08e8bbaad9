"""The deadline of a day: published by ``[alerts] deadline`` of the next UTC day.

Airflow's own references fire at once for every day of a backfill. This one gives a deadline to scheduled runs
alone, and to the runs that a scheduled one starts for further networks. A plugin makes it known to Airflow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import BaseDeadlineReference, DeadlineAlert

from permalake.config import load_settings
from permalake.config.alerts import AlertsSettings
from permalake.errors import PermalakeError
from permalake.orchestrate.alerts import missed
from permalake.orchestrate.network_runs import SCHEDULED, type_of
from permalake.pipeline.alerts import send

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

log = logging.getLogger(__name__)


class PublishedBy(BaseDeadlineReference):
    """The moment by which the day of a scheduled run is to be published; none for other runs."""

    required_kwargs: ClassVar[set[str]] = {"dag_id", "run_id"}

    def _evaluate_with(self, *, session: Session, dag_id: str, run_id: str) -> datetime | None:
        from airflow.models import DagRun
        from sqlalchemy import select

        run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        if run is None:
            return None
        return moment(type_of(run), run.conf or {}, run.data_interval_start)


def moment(run_type: str, conf: Mapping[str, Any], interval_start: datetime | None) -> datetime | None:
    """Return the deadline of a run, from what Airflow knows of it."""
    if conf.get(SCHEDULED) and conf.get("start"):
        day = date.fromisoformat(conf["start"])
    elif run_type == "scheduled" and interval_start is not None:
        day = interval_start.astimezone(UTC).date()
    else:
        return None
    return datetime.combine(day + timedelta(days=1), _configured(), UTC)


def _configured() -> time:
    try:
        text = load_settings().alerts.deadline
    except PermalakeError as error:
        # A faulty configuration fails the run itself; its deadline must not stop the scheduler.
        log.warning("the deadline is the default one: %s", error)
        text = AlertsSettings().deadline
    return time.fromisoformat(text)


def deadline() -> DeadlineAlert:
    """Return the deadline that every daily DAG has."""
    return DeadlineAlert(
        reference=PublishedBy(),
        interval=timedelta(0),
        callback=AsyncCallback(on_missed),
        name="published in time",
    )


async def on_missed(context: dict[str, Any], **_: Any) -> None:
    """Airflow's triggerer calls this once for a run that is not through when its deadline passes."""
    await asyncio.to_thread(_alert, context)


def _alert(context: dict[str, Any]) -> None:
    if alert := missed(context):
        send(alert)
