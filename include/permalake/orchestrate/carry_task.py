"""The DAG task that builds the carried tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from permalake.contracts.steps import Step, StepResult
from permalake.orchestrate import lineage
from permalake.orchestrate.step_task import Flow
from permalake.orchestrate.submit_task import SparkStep
from permalake.pipeline.progress import emit
from permalake.pipeline.request import BuildRequest

if TYPE_CHECKING:
    from permalake.pipeline.workspace import Workspace


class CarryStep(SparkStep):
    """Claims what the submit of the audit carried, or submits; skipped when every published day is carried.

    It holds no days: one run at a time carries a network, and others build meanwhile.
    """

    def _begin(
        self,
        work: Workspace,
        request: BuildRequest,
        context: Any,  # noqa: ARG002
    ) -> tuple[BuildRequest, StepResult | None]:
        if self.domain.is_first(self.step, request.only):
            self._skip_unless_waiting(work)
            return request, None
        return request, self.claimed(work, request)

    def claimed(self, work: Workspace, request: BuildRequest) -> StepResult | None:
        """Claim what the submit of the audit carried; skip the task when there is no more to do."""
        result = super().claimed(work, request)
        if result is None:
            self._skip_unless_waiting(work)
        return result

    def _skip_unless_waiting(self, work: Workspace) -> None:
        if work.carries.waiting(work.network) is None:
            reason = "every published day is carried"
            emit("skipped", step=self.task_id, reason=reason)
            raise AirflowSkipException(reason)

    def _chained(self) -> tuple[Step, ...]:
        return ()

    def _lineage(self, work: Workspace, result: StepResult) -> Flow:
        own = [name for name, table in self.domain.tables.items() if table.commit == "day"]
        read = lineage.tables(work.settings, work.network, own)
        return read, lineage.tables(work.settings, work.network, result.rows)
