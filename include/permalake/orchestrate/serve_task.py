"""The DAG task that gives the stores what the lake has published."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from permalake.contracts.steps import SERVE, Step, StepResult
from permalake.orchestrate import lineage
from permalake.orchestrate.connections import store_variables
from permalake.orchestrate.rebuild_runs import follow_up
from permalake.orchestrate.step_task import Flow
from permalake.orchestrate.submit_task import SparkStep
from permalake.pipeline.progress import emit
from permalake.pipeline.request import BuildRequest
from permalake.spark import jars

if TYPE_CHECKING:
    from permalake.pipeline.workspace import Workspace


class ServeStep(SparkStep):
    """Submits the job when a store has days to receive; skipped with its reason otherwise.

    The sensor before it has waited for the stores.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._due: dict[str, list[date]] = {}

    def execute(self, context: Any) -> dict[str, Any] | None:  # type: ignore[override]
        """Do as every Spark step, with what Airflow's connections say of the stores."""
        with store_variables(self.domain):
            return super().execute(context)

    def _begin(self, work: Workspace, request: BuildRequest, context: Any) -> tuple[BuildRequest, None]:
        from permalake.stores import serve

        if follower := follow_up(work.reader, context, request):
            self.log.info("started %s: days were published before their turn", follower)
        settings, network = work.settings, request.network
        stores = self.domain.configured_stores(settings)
        if not stores:
            sections = ", ".join(f"[{store.name}]" for store in self.domain.stores)
            self._skip(f"no store is configured for {network} ({sections})")
        if request.force and request.only == SERVE:
            serve.again(settings, network, stores, request.start, request.end)
        self._due = serve.waiting(settings, network, stores)
        if not self._due:  # This task alone may have been cleared, because a store has lost its tables.
            serve.prepare(settings, network, stores)
            self._due = serve.waiting(settings, network, stores)
        if not self._due:
            self._skip("the stores have every published day")
        jars.resolve(self._store_jars(work))
        return request, None  # No other submit writes into the stores.

    def _chained(self) -> tuple[Step, ...]:
        return ()

    def _skip(self, reason: str) -> None:
        emit("skipped", step=self.task_id, reason=reason)
        raise AirflowSkipException(reason)

    def _lineage(self, work: Workspace, result: StepResult) -> Flow:
        tables = lineage.tables(work.settings, work.network, self.domain.tables)
        written = [
            store.dataset(work.settings, work.network)
            for store in self.domain.stores
            if store.name in (result.served or {})
        ]
        return tables, written

    def _store_jars(self, work: Workspace) -> tuple[str, ...]:
        stores = self.domain.configured_stores(work.settings)
        return tuple(jar for store in stores if store.name in self._due for jar in store.jars())

    def _jars(self, work: Workspace) -> tuple[str, ...]:
        return (*jars.COORDINATES, *self._store_jars(work))
