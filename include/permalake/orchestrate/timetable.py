"""The timetable of the daily DAGs, and the ids of their scheduled runs."""

from __future__ import annotations

import logging
from datetime import UTC
from typing import TYPE_CHECKING, Any

from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.utils.types import DagRunType

from permalake.config import load_settings
from permalake.domains import named
from permalake.errors import PermalakeError
from permalake.orchestrate.network_runs import first_network
from permalake.pipeline.request import run_name

if TYPE_CHECKING:
    from airflow.timetables.base import DataInterval
    from pendulum import DateTime

log = logging.getLogger(__name__)


class UtcDays(CronDataIntervalTimetable):
    """Every UTC day of a domain, at midnight. A plugin makes it known to Airflow.

    A scheduled run is called ``NETWORK_DATE__scheduled``. Airflow asks for no other run's name, or does not
    say which network and days it is for: backfills and runs by hand have these in their note.
    """

    def __init__(self, domain: str) -> None:
        super().__init__("0 0 * * *", timezone="UTC")
        self._domain = domain

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> UtcDays:
        """Return the timetable that :meth:`serialize` described."""
        return cls(data["domain"])

    def serialize(self) -> dict[str, Any]:
        """Return what Airflow stores of the timetable with its DAG."""
        return {"domain": self._domain}

    def generate_run_id(
        self, *, run_type: DagRunType, run_after: DateTime, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """Return the id of a new run; Airflow's usual one where the network is not known."""
        usual: str = super().generate_run_id(
            run_type=run_type, run_after=run_after, data_interval=data_interval, **extra
        )
        if run_type != DagRunType.SCHEDULED or data_interval is None:
            return usual
        try:
            network = first_network(load_settings(), named(self._domain))
        except PermalakeError as error:  # It fails the run itself; it must not stop the scheduler.
            log.warning("the run is called %s: %s", usual, error)
            return usual
        day = data_interval.start.astimezone(UTC).date()
        return f"{run_name(network, day, day)}__{run_type}" if network else usual
