"""The DAG task that gives the stores what the lake has published."""

from __future__ import annotations

from datetime import date
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from permalake.config import Settings
from permalake.contracts import tables_of
from permalake.lake.step_ledger import Done
from permalake.orchestrate import lineage
from permalake.orchestrate.rebuild_runs import follow_up
from permalake.orchestrate.submit_task import Flow, SparkStep
from permalake.pipeline.domain import SERVE
from permalake.pipeline.progress import emit
from permalake.pipeline.request import BuildRequest
from permalake.spark import jars
from permalake.stores import serve


class ServeStep(SparkStep):
    """Submits ``spark/serve.py`` when a configured store lacks a published day of the network, whichever run
    published it; skipped with its reason otherwise.

    A store that does not answer fails the task before anything is submitted, so that waiting for it costs
    nothing but a retry.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._due: dict[str, list[date]] = {}

    def _begin(self, settings: Settings, request: BuildRequest, context: Any) -> BuildRequest:
        if follower := follow_up(settings, context, request):
            self.log.info("started %s: days were published before their turn", follower)
        network = request.network
        if not serve.stores_of(settings, network):
            self._skip(f"no store is configured for {network} ([cassandra], [bigtable])")
        if request.force and request.only == SERVE:
            serve.again(settings, network, request.start, request.end)
        serve.prepare(settings, network)
        self._due = serve.waiting(settings, network)
        if not self._due:
            self._skip("the stores have every published day")
        if serve.CASSANDRA in self._due:
            jars.resolve(jars.STORE_COORDINATES)
        return request

    def _skip(self, reason: str) -> None:
        emit("skipped", step=self.task_id, reason=reason)
        raise AirflowSkipException(reason)

    def _lineage(self, settings: Settings, request: BuildRequest, facts: dict[str, Any]) -> Flow:
        network = request.network
        tables = lineage.tables(settings, network, tables_of(network))
        return tables, lineage.stores(settings, network, facts["served"])

    def _jars(self) -> tuple[str, ...]:
        stores = jars.STORE_COORDINATES if serve.CASSANDRA in self._due else ()
        return (*jars.COORDINATES, *stores)

    def _outcome(self, settings: Settings, request: BuildRequest, _done: Done | None) -> dict[str, Any]:
        """Days that each store was given."""
        left = serve.waiting(settings, request.network)
        return {
            "served": {store: len(set(days) - set(left.get(store, ()))) for store, days in self._due.items()}
        }
