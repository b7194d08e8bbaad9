"""The DAG task that publishes what the audit has passed: plain Python, no JVM."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from permalake.config import load_settings
from permalake.errors import PermalakeError
from permalake.orchestrate.context import request_from
from permalake.orchestrate.progress import emit


class PublishStep(BaseOperator):
    """Publishes the passing days of the run's attempt, all tables in one transaction; then fails when days
    were refused or failed the audit, naming each with its reason.

    :param kind: ``iota`` or ``wormhole``
    """

    def __init__(self, *, kind: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = kind

    def execute(self, context: Any) -> dict[str, Any]:
        """Publish; returns the published days and the rows by table."""
        from permalake.lake import Lake

        settings = load_settings()
        request = request_from(settings, self.kind, context)
        started = time.monotonic()
        emit("start", step=self.task_id)
        digest = context["ti"].xcom_pull(task_ids="ingest_decode", key="fingerprint")
        try:
            lake = Lake(settings)
            publication = lake.publish(lake.resume(request.network, request.run_id), fingerprint=digest)
        except PermalakeError as error:
            self._fail(started, str(error))
        days = [str(day) for day in publication.days]
        summary = {"network": request.network, "days": days, "rows": publication.rows}
        emit("done", step=self.task_id, seconds=time.monotonic() - started, **summary)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"network": request.network, "days": days}
        if publication.unpublished:
            faults = "; ".join(f"{day}: {reason}" for day, reason in sorted(publication.unpublished.items()))
            self._fail(started, f"unpublished {faults}")
        return summary

    def _fail(self, started: float, reason: str) -> None:
        emit("failed", step=self.task_id, seconds=time.monotonic() - started, reason=reason)
        raise AirflowFailException(reason)
