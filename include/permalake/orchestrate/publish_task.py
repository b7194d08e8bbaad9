"""The DAG task that publishes what the audit has passed: plain Python, no JVM."""

from __future__ import annotations

import time
from typing import Any, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from permalake.config import load_settings
from permalake.errors import PermalakeError, RefusedError
from permalake.lake import Lake
from permalake.orchestrate import lineage
from permalake.orchestrate.context import release, request_from
from permalake.pipeline.domain import comes_before
from permalake.pipeline.progress import emit


class PublishStep(BaseOperator):
    """Publishes the passing days of the run's attempt, all tables in one transaction; then fails when days
    were refused or failed the audit, naming each with its reason.

    :param kind: ``iota`` or ``wormhole``
    """

    def __init__(self, *, kind: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self._flow: tuple[list[lineage.Named], list[lineage.Named]] | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """Publish; returns network, published days and their rows by table."""
        settings = load_settings()
        request = request_from(settings, self.kind, context)
        if comes_before(self.kind, self.task_id, request.only):
            # Skipped, not done: a task that is done tells downstream DAGs of a publication.
            raise AirflowSkipException(f"left as it is: this run starts at {request.only}")
        started = time.monotonic()
        emit("start", step=self.task_id)
        try:
            lake = Lake(settings)
            publication = lake.publish(lake.resume(request.network, request.run_id))
        except PermalakeError as error:
            release(settings, request)
            self._fail(started, str(error), error.exit_code)
        days = [str(day) for day in publication.days]
        summary = {"network": request.network, "days": days, "rows": publication.rows}
        emit("done", step=self.task_id, seconds=time.monotonic() - started, **summary)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"network": request.network, "days": days}
        written = lineage.tables(settings, request.network, publication.rows)
        self._flow = written, written
        if publication.withheld:
            faults = (f"{day}: {reason}" for day, reason in sorted(publication.withheld.items()))
            self._fail(started, f"not published: {'; '.join(faults)}", RefusedError.exit_code)
        return summary

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> Any:
        """The published tables, for OpenLineage."""
        return lineage.lineage(*(self._flow or ([], [])))

    def _fail(self, started: float, reason: str, exit_code: int) -> NoReturn:
        seconds = time.monotonic() - started
        emit("failed", step=self.task_id, seconds=seconds, reason=reason, exit_code=exit_code)
        raise AirflowFailException(reason)
